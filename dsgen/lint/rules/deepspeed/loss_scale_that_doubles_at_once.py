from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage, whole
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# A plan has to gain a tenth of the time for what complicates it: that much is worth a word.
_SHARE = 0.1


@rule(
    "DS412",
    kinds=("deepspeed",),
    about=("loss_scale_window",),
    source="deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler.update_scale; fused_optimizer.py:_update_scale",
)
def loss_scale_that_doubles_at_once(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A loss_scale_window of a few steps: the loss scale climbs at once and overflows again and again.

    After window + 1 steps without overflow (loss_scale_window, 1000 by default) the scale doubles. Once it is as large
    as the gradients bear, that overflows: hysteresis steps (2 by default; 1 without ZeRO) are skipped until it is
    halved again. So hysteresis of every window + 1 + hysteresis steps are lost for ever: half of them with a window
    of 1. A tenth and more is reported.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 1}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 100}}
    ```
    """
    window = whole(file.get("fp16", "loss_scale_window"))
    if window is None or not is_on(file, "fp16", target) or file.get("fp16", "loss_scale", default=0) != 0:
        return
    lost = 1 if stage(file, target) == 0 else whole(file.get("fp16", "hysteresis", default=2)) or 1
    cycle = window + 1 + lost
    if lost / cycle >= _SHARE:
        message = (
            f"the loss scale doubles after {window + 1} steps: {lost} of {cycle} overflow and are skipped for ever"
        )
        yield warning(("fp16", "loss_scale_window"), message, help="write 1000, or leave it out")
