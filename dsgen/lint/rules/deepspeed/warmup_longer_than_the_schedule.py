from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import whole
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_DEFAULT = 1000


@rule(
    "DS507",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/lr_schedules.py:WarmupDecayLR (warns only)",
)
def warmup_longer_than_the_schedule(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """A warm-up that is longer than the whole schedule: the learning rate never reaches its maximum.

    ```json bad
    {"train_batch_size": 8,
     "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 1000}}}
    ```

    ```json good
    {"train_batch_size": 8,
     "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1000, "warmup_num_steps": 100}}}
    ```
    """
    total = whole(file.get("scheduler", "params", "total_num_steps"))
    warmup = whole(file.get("scheduler", "params", "warmup_num_steps", default=_DEFAULT))
    if total is not None and warmup is not None and warmup > total:
        yield warning(
            ("scheduler", "params", "total_num_steps"),
            f"the warm-up of {warmup} steps is longer than the {total} steps in all: the rate never peaks",
            help="write fewer warmup_num_steps; total_num_steps counts optimizer steps, not micro batches",
        )
