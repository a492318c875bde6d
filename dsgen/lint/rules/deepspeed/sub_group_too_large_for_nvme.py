from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# 1e10 x 16 bytes = 160 GB per rank: more than nodes have for each of their GPUs.
LARGEST = 1e10


@rule(
    "DS310",
    kinds=("deepspeed",),
    about=("offload_optimizer",),
    source="deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups; swap_tensor/partitioned_optimizer_swapper.py",
)
def sub_group_too_large_for_nvme(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A sub_group_size that defeats NVMe offload.

    The optimizer step swaps one sub-group in at a time: with N parameters to a group, each rank holds N x 16 bytes of
    master weights, gradients and Adam states in host memory. A value beyond the model's size makes one group of
    everything.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e12,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e9,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    ```
    """
    size = file.get("zero_optimization", "sub_group_size", default=0)
    path = ("zero_optimization", "sub_group_size")
    if offload_device(file, "offload_optimizer") != "nvme" or stage(file, target) != 3:
        return
    if not isinstance(size, int | float) or isinstance(size, bool):
        return
    if size > LARGEST:
        yield warning(
            path,
            f"sub_group_size {min(size, 1e300):.3g} is one group for all parameters of any model: a rank's whole "
            f"optimizer state comes into host memory at once{_amount(file, target, size)}",
            help="write 1e9 or less: 1e9 x 16 bytes = 16 GB per rank at a time",
        )


def _group(file: ConfigFile, target: LintTarget, size: float) -> float | None:
    """Parameters of the largest group of one rank: no more than its shard."""
    from dsgen.lint.amounts import zero_ranks

    ranks = zero_ranks(file, target)
    return min(size, target.model.trained(target.method) / ranks) if target.model is not None and ranks else None


def _amount(file: ConfigFile, target: LintTarget, size: float) -> str:
    from dsgen.lint.amounts import elements, in_bytes, zero_ranks

    group, ranks = _group(file, target, size), zero_ranks(file, target)
    if group is None or target.model is None:
        return ""
    whole = elements(target.model.trained(target.method))
    return f", {whole} x 16 bytes / {ranks} ranks = {in_bytes(group * 16)} per rank"
