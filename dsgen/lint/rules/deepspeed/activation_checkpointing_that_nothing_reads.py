from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_KEYS = (
    "partition_activations",
    "cpu_checkpointing",
    "contiguous_memory_optimization",
    "number_checkpoints",
    "synchronize_checkpoint_boundary",
)


@rule(
    "DS804",
    kinds=("deepspeed",),
    about=("activation_checkpointing",),
    source="deepspeed/runtime/activation_checkpointing/checkpointing.py:configure; transformers/trainer.py",
)
def activation_checkpointing_that_nothing_reads(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An activation_checkpointing section under a loader that never reads it.

    The engine does not read it: it acts only where code calls deepspeed.checkpointing. transformers and accelerate
    have gradient checkpointing of their own (``--gradient_checkpointing true``,
    ``gradient_checkpointing_enable()``), which this section does not switch on. contiguous_memory_optimization
    needs partition_activations and number_checkpoints wherever it is read.

    ```json bad --loaded-by transformers
    {"train_batch_size": "auto", "zero_optimization": {"stage": 0},
     "activation_checkpointing": {"partition_activations": true}}
    ```

    ```json bad
    {"train_batch_size": 8, "activation_checkpointing": {"contiguous_memory_optimization": true}}
    ```

    ```json good --loaded-by lightning
    {"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}
    ```
    """
    section = file.section("activation_checkpointing")
    on = [key for key, value in section.items() if value not in (False, None, 0, "auto") and key in _KEYS]
    path = ("activation_checkpointing",)
    if target.loaded_by in ("transformers", "accelerate") and on:
        yield warning(
            path,
            f"{target.loaded_by} never reads activation_checkpointing ({', '.join(on)}): it recomputes no activation",
            help="remove it, and pass --gradient_checkpointing true or call model.gradient_checkpointing_enable()",
            on="key",
        )
    elif section.get("contiguous_memory_optimization") is True and not section.get("partition_activations"):
        message = "contiguous_memory_optimization needs partition_activations: deepspeed.checkpointing asserts"
        yield warning((*path, "contiguous_memory_optimization"), message, help="write it, or remove this")
