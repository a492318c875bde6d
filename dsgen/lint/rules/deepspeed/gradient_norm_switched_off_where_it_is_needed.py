from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, offload_device, stage
from dsgen.lint.mark import Mark, error, insert
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS312",
    kinds=("deepspeed",),
    about=("compute_grad_norm",),
    source=(
        "deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig (0.19.7); runtime/engine.py:_configure_zero_optimizer"
    ),
)
def gradient_norm_switched_off_where_it_is_needed(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """compute_grad_norm false (DeepSpeed 0.19.7 on) where the norm is needed, or at a stage that cannot do without.

    It is supported at stages 1 and 2 only. Clipping needs the norm, and gradient_clipping is 1.0 unless it is written
    as 0.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "gradient_clipping": 0, "zero_optimization": {"stage": 3, "compute_grad_norm": false}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "compute_grad_norm": false}}
    ```

    ```json fixed --deepspeed 0.19.8
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "compute_grad_norm": false}, "gradient_clipping": 0}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "gradient_clipping": 0, "zero_optimization": {"stage": 2, "compute_grad_norm": false}}
    ```
    """
    path = ("zero_optimization", "compute_grad_norm")
    in_force = stage(file, target)
    if file.get(*path) is not False or in_force is None or not target.since("0.19.7"):
        return
    clipping = file.get("gradient_clipping", default=1.0)
    if in_force not in (1, 2):
        message = f"compute_grad_norm false needs ZeRO stage 1 or 2; at stage {in_force} DeepSpeed raises"
        yield error(path, message, help="remove it", on="key")
    elif isinstance(clipping, int | float) and clipping > 0:
        default = "" if file.has("gradient_clipping") else " (its default)"
        message = f"gradient_clipping is {clipping}{default} and needs the norm that compute_grad_norm false leaves out"
        absent = not file.has("gradient_clipping")
        fix = insert("switch clipping off", ("gradient_clipping",), 0, safe=False) if absent else None
        yield error(path, message, help='write "gradient_clipping": 0, or compute the norm', on="key", fix=fix)
    elif in_force == 1 and _has_bf16_optimizer(file, target):
        message = "stage 1 in bf16 with sums in fp32 needs the norm that compute_grad_norm false leaves out"
        related = ((("data_types", "grad_accum_dtype"), "sums in fp32"),)
        yield error(path, f"{message}: DeepSpeed raises", help="compute the norm", on="key", related=related)


def _has_bf16_optimizer(file: ConfigFile, target: LintTarget) -> bool:
    """deepspeed/runtime/engine.py:_do_optimizer_sanity_check."""
    in_fp32 = file.get("data_types", "grad_accum_dtype") in ("fp32", "float32", "float", "torch.float32")
    return (
        in_fp32 and is_on(file, "bf16", target) is True and offload_device(file, "offload_optimizer") in (None, "none")
    )
