from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, whole
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# One step in ten is skipped, at the least.
_FEW = 10


@rule(
    "DS412",
    kinds=("deepspeed",),
    about=("loss_scale_window",),
    source="deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler.update_scale",
)
def loss_scale_that_doubles_at_once(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A loss_scale_window of a few steps: the loss scale climbs at once and overflows again and again.

    After loss_scale_window steps without overflow (1000 by default) the scale doubles; an overflow skips the step
    and halves it. With a window of 1 every second step or so is skipped.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 1}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 100}}
    ```
    """
    window = whole(file.get("fp16", "loss_scale_window"))
    if (
        window is None
        or window >= _FEW
        or not is_on(file, "fp16", target)
        or file.get("fp16", "loss_scale", default=0) != 0
    ):
        return
    every = "every step" if window == 1 else f"every {window} steps"
    message = f"the loss scale doubles {every}: steps overflow and are skipped for ever"
    yield warning(("fp16", "loss_scale_window"), message, help="write 1000, or leave it out")
