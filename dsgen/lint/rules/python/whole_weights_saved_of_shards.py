import ast
from collections.abc import Iterator
from typing import Any

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import engine_config, look, stage_of, trainer_config, training_arguments
from dsgen.lint.python.models import receiver, wrapper_of, wraps_by
from dsgen.lint.python.names import argument, calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget
from dsgen.target import Loader

_KEYS = (
    "stage3_gather_16bit_weights_on_model_save",
    "gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save",
)
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer")


@rule(
    "XF303",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:save_16bit_model (Did not save the model), transformers/trainer.py:save_model",
)
def whole_weights_saved_of_shards(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The code saves the model's weights under ZeRO stage 3, and the config does not gather them.

    ``engine.save_16bit_model`` then saves nothing and returns False; the Trainer's ``save_model`` saves ZeRO's own
    files, from which zero_to_fp32.py has to make a model. stage3_gather_16bit_weights_on_model_save is false by
    default.

    ```python bad
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW", "params": {}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    engine.save_16bit_model("out")
    ```

    ```python bad
    from transformers import Trainer, TrainingArguments
    config = {"train_batch_size": "auto", "zero_optimization": {"stage": 3}}
    args = TrainingArguments(output_dir="out", deepspeed=config)
    trainer = Trainer(model=model, args=args)
    trainer.train()
    trainer.save_model("out")
    ```

    ```python good
    import deepspeed
    config = {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True},
        "optimizer": {"type": "AdamW", "params": {}},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    engine.save_16bit_model("out")
    ```

    ```python good
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW", "params": {}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    engine.save_checkpoint("out")
    ```
    """
    engines = wraps_by(file, "deepspeed")
    if len(engines) == 1:
        config, given = engine_config(file, engines[0]), argument(engines[0].call, "config", 10)
        for call in file.tree.methods_called("save_16bit_model", "save_fp16_model"):
            owner = receiver(call)
            if owner is not None and wrapper_of(file, owner) == "deepspeed" and _scatters(config):
                yield _mark(file, call, given, "deepspeed", "this saves nothing, and returns False")
    arguments = training_arguments(file)
    if len(arguments) == 1:
        config, given = trainer_config(file, arguments[0]), argument(arguments[0], "deepspeed")
        for call in file.tree.methods_called("save_model"):
            owner = receiver(call)
            if owner is not None and _is_trainer(file, owner) and _scatters(config):
                yield _mark(
                    file, call, given, "transformers", "this saves ZeRO's shards, no weights that load elsewhere"
                )


def _scatters(config: dict[str, Any] | None) -> bool:
    """Whether it is stage 3 for certain, and nothing gathers."""
    if config is None or stage_of(config) != 3:
        return False
    return all(look(config, "zero_optimization", key, default=False) is False for key in _KEYS)


def _is_trainer(file: PythonFile, owner: ast.expr) -> bool:
    made = {origin.node for origin in origins(file, owner)}
    return bool(made & set(calls_of(file, *_TRAINERS)))


def _mark(file: PythonFile, call: ast.Call, given: ast.expr | None, loader: Loader, lot: str) -> Mark:
    return warning(
        call,
        f"under ZeRO stage 3 without {_KEYS[0]} {lot}",
        help=f'write "{_KEYS[0]}": true in the config, or run zero_to_fp32.py on a checkpoint',
        related=related(file, given, loader, ("zero_optimization", _KEYS[0]), "weights are not gathered"),
    )
