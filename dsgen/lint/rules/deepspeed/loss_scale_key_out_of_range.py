from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS403",
    kinds=("deepspeed",),
    about=("loss_scale_window", "min_loss_scale"),
    source=(
        "deepspeed/runtime/precision_config.py:_validate_dynamic_loss_scale_params; fp16/loss_scaler.py:update_scale"
    ),
)
def loss_scale_key_out_of_range(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """loss_scale_window or min_loss_scale of zero or below while the loss scale is dynamic.

    DeepSpeed refuses both from 0.19.3 on. Before, a window of 0 divided by zero at the first step, and a scale
    without a floor fell to nothing.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "fp16": {"enabled": true, "min_loss_scale": 0}}
    ```

    ```json bad --deepspeed 0.16.4
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 0}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": false, "min_loss_scale": 0}}
    ```
    """
    if not is_on(file, "fp16", target) or file.get("fp16", "loss_scale", default=0) != 0:
        return
    refuses = target.since("0.19.3")
    for key, before, default in (
        ("loss_scale_window", "divides by it", 1000),
        ("min_loss_scale", "has no floor then", 1),
    ):
        value = file.get("fp16", key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
            lot = f"{target.library} {'refuses it' if refuses else before}"
            make = error if refuses or key == "loss_scale_window" else warning
            message = f"{key} is {value}; while the loss scale is dynamic it must be above 0: {lot}"
            yield make(("fp16", key), message, help=f"write {default}")
