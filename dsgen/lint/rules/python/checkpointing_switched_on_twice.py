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
        own = argument(call, "gradient_checkpointing") or argument(call, "activation_checkpointing")
        config = trainer_config(file, call, "fsdp_config")
        fsdp = argument(call, "fsdp")
        on = [look(config, key, default=False) for key in ("activation_checkpointing", "fsdp_activation_checkpointing")]
        if (
            fsdp is not None
            and isinstance(own, ast.Constant)
            and own.value is True
            and any(v in (True, "true") for v in on)
        ):
            yield warning(
                own,
                "checkpointing is switched on twice: here the model's, and FSDP's in fsdp_config "
                "(activation_checkpointing); "
                "the Trainer refuses both, or gathers once more in the backward pass",
                help="keep only FSDP's activation_checkpointing; with version 2 and an accelerate before its fix of "
                "the "
                "wrapped children, the model's gradient_checkpointing is the leaner one",
            )
