from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, info
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS806",
    kinds=("deepspeed",),
    about=("wall_clock_breakdown", "flops_profiler", "comms_logger"),
    source="deepspeed/utils/timer.py:SynchronizedWallClockTimer, runtime/engine.py (flops_profiler "
    "forces wall_clock_breakdown)",
)
def measurements_that_slow_training(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """What measures training is left on (advice, shown with ``--info``).

    wall_clock_breakdown, flops_profiler and comms_logger wait for the GPU at every micro step. Switch them on to
    look, and off to train.

    ```json bad
    {"train_batch_size": 8, "wall_clock_breakdown": true}
    ```

    ```json good
    {"train_batch_size": 8, "wall_clock_breakdown": false}
    ```
    """
    for path in (("wall_clock_breakdown",), ("flops_profiler", "enabled"), ("comms_logger", "enabled")):
        if file.get(*path) is True:
            yield info(
                path, f"{path[0]} waits for the GPU in every micro step", help="switch it off once you have looked"
            )
