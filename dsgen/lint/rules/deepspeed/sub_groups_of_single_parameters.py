from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# A shard of one matrix of a 7B model over 16 ranks has 1e6 elements and more.
_SMALL = 1_000_000


@rule(
    "DS324",
    kinds=("deepspeed",),
    about=("sub_group_size",),
    source="deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups",
)
def sub_groups_of_single_parameters(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A sub_group_size so small that stage 3 steps nearly every parameter by itself.

    The optimizer of stage 3 steps one sub-group (sub_group_size elements of a rank, 1e9 by default) after the
    other. Below a million, matrices are groups of their own: thousands of kernels, and with offload as many
    transfers.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1000}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e8}}
    ```
    """
    size = file.get("zero_optimization", "sub_group_size")
    if isinstance(size, bool) or not isinstance(size, int | float) or stage(file, target) != 3:
        return
    if 0 <= size < _SMALL:
        message = f"sub_group_size {size:g}: nearly every parameter is stepped by itself"
        yield warning(("zero_optimization", "sub_group_size"), message, help="write 1e9, or leave it out")
