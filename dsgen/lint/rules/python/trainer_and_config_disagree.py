import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import look, trainer_config, training_arguments
from dsgen.lint.python.names import argument
from dsgen.lint.python.origins import constant
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Argument of the Trainer -> keys of the config that transformers compares with it.
_PAIRS: dict[str, tuple[str, ...]] = {
    "per_device_train_batch_size": ("train_micro_batch_size_per_gpu",),
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "max_grad_norm": ("gradient_clipping",),
    "learning_rate": ("optimizer", "params", "lr"),
    "weight_decay": ("optimizer", "params", "weight_decay"),
    "warmup_steps": ("scheduler", "params", "warmup_num_steps"),
}


@rule(
    "TC308",
    kinds=("python",),
    source="transformers/integrations/deepspeed.py:trainer_config_process, trainer_config_finalize",
)
def trainer_and_config_disagree(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A number stands in ``TrainingArguments`` and in the DeepSpeed config, and the two differ: the Trainer raises.

    Write "auto" in the config: then the argument is the one source.

    ```python bad
    from transformers import TrainingArguments
    config = {"gradient_accumulation_steps": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
    args = TrainingArguments(
        output_dir="out", gradient_accumulation_steps=4, learning_rate=5e-5, deepspeed=config,
    )
    ```

    ```python good
    from transformers import TrainingArguments
    config = {"gradient_accumulation_steps": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}
    args = TrainingArguments(
        output_dir="out", gradient_accumulation_steps=4, learning_rate=5e-5, deepspeed=config,
    )
    ```
    """
    for call in training_arguments(file):
        config = trainer_config(file, call)
        if config is None:
            continue
        found = []
        for name, path in _PAIRS.items():
            given = argument(call, name)
            mine = constant(file, given) if given is not None else None
            theirs = look(config, *path)
            if mine is not None and type(theirs) in (int, float) and mine != theirs:
                found.append(f"{'.'.join(path)} {theirs:g} in the config, {name} {mine:g} here")
        if found:
            yield error(
                _where(call),
                f"TrainingArguments and the DeepSpeed config disagree, so the Trainer raises: {'; '.join(found)}",
                help='write "auto" in the config: then the arguments are the one source',
            )


def _where(call: ast.Call) -> ast.expr:
    return argument(call, "deepspeed") or call
