import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.configs import look, trainer_config, training_arguments
from dsgen.lint.python.names import argument
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC609",
    kinds=("python",),
    source="transformers/training_args.py and trainer.py: activation_checkpointing in fsdp_config",
)
def checkpointing_switched_on_twice(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """FSDP's activation checkpointing and the model's gradient checkpointing are both on: keep one.

    The Trainer refuses both, or warns of an additional all-gather in the backward pass. With FSDP use FSDP's.

    ```python bad
    from transformers import TrainingArguments
    config = {"version": 2, "activation_checkpointing": True}
    args = TrainingArguments(output_dir="out", fsdp="full_shard", fsdp_config=config, gradient_checkpointing=True)
    ```

    ```python good
    from transformers import TrainingArguments
    config = {"version": 2, "activation_checkpointing": True}
    args = TrainingArguments(output_dir="out", fsdp="full_shard", fsdp_config=config)
    ```
    """
    for call in training_arguments(file):
        config = trainer_config(file, call, "fsdp_config")
        on = [look(config, key, default=False) for key in ("activation_checkpointing", "fsdp_activation_checkpointing")]
        own = _own(file, call)
        if own is not None and argument(call, "fsdp") is not None and any(value in (True, "true") for value in on):
            yield warning(
                own,
                "checkpointing is switched on twice: here the model's, and FSDP's in fsdp_config "
                "(activation_checkpointing); the Trainer refuses both, or gathers once more in the backward pass",
                help="keep only FSDP's activation_checkpointing; with version 2 and an accelerate before its fix of "
                "the "
                "wrapped children, the model's gradient_checkpointing is the leaner one",
            )


def _own(file: PythonFile, call: ast.Call) -> ast.expr | None:
    """The model's own switch: an argument of the Trainer, or a call."""
    given = argument(call, "gradient_checkpointing") or argument(call, "activation_checkpointing")
    if isinstance(given, ast.Constant) and given.value is True:
        return given
    return next(iter(file.tree.methods_called("gradient_checkpointing_enable")), None)
