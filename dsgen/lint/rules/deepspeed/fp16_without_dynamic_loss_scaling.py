from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, optimizer_type
from dsgen.lint.idle import DYNAMIC
from dsgen.lint.mark import Mark, error, replace, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS402",
    kinds=("deepspeed",),
    about=("fp16",),
    source="deepspeed/runtime/fp16/loss_scaler.py:CreateLossScaler (loss_scale != 0 is a static scale)",
)
def fp16_without_dynamic_loss_scaling(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """fp16 with a fixed loss scale, or none.

    fp16 gradients below about 6e-8 become zero, so the loss is scaled up; how far changes while training. A fixed
    loss_scale neither grows nor falls: steps that overflow are skipped for ever, small gradients vanish. loss_scale 1
    is no scaling at all. The keys of dynamic scaling do nothing beside it.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 1}}
    ```

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 128, "initial_scale_power": 16}}
    ```

    ```json fixed
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 1}}
    ```
    """
    scale = file.get("fp16", "loss_scale", default=0)
    if (
        is_on(file, "fp16", target) is False
        or optimizer_type(file) in ("lamb", "onebitlamb")  # a rule of its own: there it raises
        or isinstance(scale, bool)
        or not isinstance(scale, int | float)
        or scale <= 0
    ):
        return
    message = f"loss_scale {scale} is a fixed loss scale: it never adapts"
    if scale <= 1:
        message = f"loss_scale {scale} switches loss scaling off: small fp16 gradients become zero"
    idle = [key for key in DYNAMIC if file.has("fp16", key)]
    if idle:
        message += f"; {', '.join(idle)} {'does' if len(idle) == 1 else 'do'} nothing beside it"
    path = ("fp16", "loss_scale")
    fix = replace("scale the loss dynamically", path, 0, safe=False)
    # Where fp16 is "auto" the trainer may yet leave it off.
    make = error if scale <= 1 and is_on(file, "fp16", target) else warning
    yield make(path, message, help="write 0: dynamic loss scaling", fix=fix)
