from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# 1e10 x 16 bytes = 160 GB per rank: more than nodes have for each of their GPUs.
_LARGEST = 1e10


@rule(
    "DS310",
    kinds=("deepspeed",),
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
    if offload_device(file, "offload_optimizer") != "nvme" or stage(file, target) != 3:
        return
    if isinstance(size, int | float) and size > _LARGEST:
        yield warning(
            ("zero_optimization", "sub_group_size"),
            f"sub_group_size {min(size, 1e300):.3g} is one group for all parameters of any model: a rank's whole "
            "optimizer state comes into host memory at once",
            help="write 1e9 or less: 1e9 x 16 bytes = 16 GB per rank at a time",
        )
