from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, optimizer_type, stage
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("DS308", kinds=("deepspeed",), about=("ratio",), source="deepspeed/runtime/zero/config.py:offload_ratio_check")
def partial_offload_below_stage_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """``offload_optimizer.ratio`` below 1 (part of the step on the CPU) works only at stage 3.

    DeepSpeed raises elsewhere; before 0.15 it ignored the key there. At stage 3 only DeepSpeedCPUAdam can share a step.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}
    ```
    """
    ratio = file.get("zero_optimization", "offload_optimizer", "ratio", default=1)
    in_force = stage(file, target)
    if isinstance(ratio, int | float) and ratio < 1 and in_force in (0, 1, 2):
        refused = target.since("0.15.0")
        lot = f"{target.library} raises" if refused else f"{target.library} ignores it"
        yield (error if refused else warning)(
            ("zero_optimization", "offload_optimizer", "ratio"),
            f"ratio {ratio} offloads a part of the optimizer, which needs ZeRO stage 3; at stage {in_force} {lot}",
            help="use stage 3, or remove ratio",
        )
    elif isinstance(ratio, int | float) and ratio < 1 and in_force == 3 and _is_no_adam(file):
        yield error(
            ("zero_optimization", "offload_optimizer", "ratio"),
            f"ratio {ratio} works with Adam and AdamW only: the engine asserts",
            help="use AdamW, or remove ratio",
        )


def _is_no_adam(file: ConfigFile) -> bool:
    name = optimizer_type(file)
    by_torch = file.get("optimizer", "params", "torch_adam") is True
    offloads = offload_device(file, "offload_optimizer") in ("cpu", "nvme")
    return offloads and name is not None and (name not in ("adam", "adamw") or by_torch)
