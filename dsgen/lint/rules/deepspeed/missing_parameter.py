from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS505",
    kinds=("deepspeed",),
    about=("missing-parameter",),
    source="deepspeed/runtime/lr_schedules.py: constructors of WarmupDecayLR, WarmupCosineLR, OneCycle",
)
def missing_parameter(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A scheduler without a parameter that its constructor requires.

    ```json bad
    {"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 100}}}
    ```

    ```json good
    {"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1000}}}
    ```
    """
    yield from slips(file, target, "missing-parameter")
