import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import look, trainer_config, training_arguments
from dsgen.lint.python.names import argument, called, is_open
from dsgen.lint.python.origins import constant
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Argument of the Trainer -> keys of the config that transformers compares with it, and the argument's default.
_PAIRS: tuple[tuple[str, tuple[str, ...], float | bool | None], ...] = (
    ("per_device_train_batch_size", ("train_micro_batch_size_per_gpu",), 8),
    ("gradient_accumulation_steps", ("gradient_accumulation_steps",), 1),
    ("max_grad_norm", ("gradient_clipping",), 1.0),
    ("learning_rate", ("optimizer", "params", "lr"), 5e-5),
    ("learning_rate", ("scheduler", "params", "warmup_max_lr"), 5e-5),
    ("weight_decay", ("optimizer", "params", "weight_decay"), 0.0),
    ("adam_epsilon", ("optimizer", "params", "eps"), 1e-8),
    ("warmup_steps", ("scheduler", "params", "warmup_num_steps"), None),
    ("fp16", ("fp16", "enabled"), False),
    ("bf16", ("bf16", "enabled"), False),
)
# With these arguments the pair is not compared, or by another value.
_UNLESS = {
    "per_device_train_batch_size": "auto_find_batch_size",
    "fp16": "fp16_full_eval",
    "bf16": "bf16_full_eval",
}
# Others that take their arguments have defaults of their own.
_WITH_DEFAULTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


@rule(
    "TC308",
    kinds=("python",),
    source="transformers/integrations/deepspeed.py:trainer_config_process, trainer_config_finalize",
)
def trainer_and_config_disagree(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A number stands in ``TrainingArguments`` and in the DeepSpeed config, and the two differ: the Trainer raises.

    An argument that is not written counts with its default (learning_rate 5e-5, per_device_train_batch_size 8,
    max_grad_norm 1.0, no fp16, no bf16). Write "auto" in the config: then the argument is the one source.

    ```python bad
    from transformers import TrainingArguments
    config = {
        "gradient_accumulation_steps": 8,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {"stage": 2},
    }
    args = TrainingArguments(
        output_dir="out", gradient_accumulation_steps=4, learning_rate=5e-5, deepspeed=config,
    )
    ```

    ```python bad
    from transformers import TrainingArguments
    args = TrainingArguments("out", deepspeed={"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1}})
    ```

    ```python good
    from transformers import TrainingArguments
    config = {
        "gradient_accumulation_steps": "auto",
        "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "zero_optimization": {"stage": 2},
    }
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
        by_default = called(file, call) in _WITH_DEFAULTS and not is_open(call)
        for name, path, default in _PAIRS:
            if name in _UNLESS and argument(call, _UNLESS[name]) is not None:
                continue
            given = argument(call, name)
            mine = _value(file, given) if given is not None else default if by_default else None
            theirs = look(config, *path)
            if mine is not None and type(theirs) in (int, float, bool) and mine != theirs:
                note = "" if given is not None else " (its default)"
                found.append(f"{'.'.join(path)} {_shown(theirs)} in the config, {name} {_shown(mine)}{note} here")
        if found:
            yield error(
                _where(call),
                f"TrainingArguments and the DeepSpeed config disagree, so the Trainer raises: {'; '.join(found)}",
                help='write "auto" in the config: then the arguments are the one source',
            )


def _value(file: PythonFile, given: ast.expr) -> float | bool | None:
    if isinstance(given, ast.Constant) and isinstance(given.value, bool):
        return given.value
    return constant(file, given)


def _shown(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _where(call: ast.Call) -> ast.expr:
    return argument(call, "deepspeed") or call
