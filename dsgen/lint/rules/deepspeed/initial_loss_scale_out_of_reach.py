from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# 2^24 is 256 times what fp16 can hold: beyond it the start costs more than eight skipped steps.
_HIGHEST, _LOWEST = 24, 4
# What torch takes for a scalar: integers of 64 bits; and below 1, doubles.
_LARGEST, _SMALLEST = 63, -1074


@rule(
    "DS404",
    kinds=("deepspeed",),
    about=("initial_scale_power",),
    source="deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler (starts at 2**initial_scale_power, no bound)",
)
def initial_loss_scale_out_of_reach(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An initial loss scale far from where scales settle.

    The dynamic scale starts at 2 to the power of initial_scale_power (16 by default). fp16 ends at 65504, so scales
    settle near 2^10 to 2^20. From 2^32 the first sixteen steps and more overflow and are skipped; from a very low
    start small gradients are lost until the scale has doubled its way up, once per loss_scale_window steps. From 2^64
    torch, which takes integers of 64 bits, raises OverflowError at the first loss times the scale.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 32}}
    ```

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 0}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 16}}
    ```
    """
    power = file.get("fp16", "initial_scale_power")
    if isinstance(power, bool) or not isinstance(power, int | float) or is_on(file, "fp16", target) is False:
        return
    if file.get("fp16", "loss_scale", default=0) != 0:
        return
    path = ("fp16", "initial_scale_power")
    if power > _LARGEST:
        message = (
            f"a loss scale of more than 2^{_LARGEST} is beyond what torch multiplies by: "
            f"with {target.library} the first loss raises"
        )
        yield error(path, message, help="write 16")
        return
    if isinstance(power, float) and not power.is_integer():
        return
    power = max(int(power), _SMALLEST)
    if power > _HIGHEST:
        message = (
            f"the loss scale starts at 2^{power}: about {power - 16} steps overflow and are skipped before it fits fp16"
        )
        yield warning(path, message, help="write 16")
    elif power < _LOWEST:
        window = file.get("fp16", "loss_scale_window", default=1000)
        message = (
            f"the loss scale starts at 2^{power}: small gradients are zero until it has doubled, every {window} steps"
        )
        yield warning(path, message, help="write 16")
