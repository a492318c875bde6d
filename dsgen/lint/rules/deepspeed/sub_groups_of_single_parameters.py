from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# A group is closed by the parameter that fills it. The shards of matrices of 4096 x 4096, of 7B models, have
# 4096 x 4096 / 16 = 1.05e6 elements on 16 ranks: each closes one, however many norms came before it.
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
    other. Below a million, each matrix closes a group: hundreds of steps of one matrix each (advice, ``--info``). With
    offload, gradients and weights are also moved in as many pieces.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1000,
     "offload_optimizer": {"device": "cpu"}}}
    ```

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 0}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e8}}
    ```
    """
    size = file.get("zero_optimization", "sub_group_size")
    if isinstance(size, bool) or not isinstance(size, int | float) or stage(file, target) != 3:
        return
    if 0 <= size < _SMALL:
        moved = offload_device(file, "offload_optimizer") in ("cpu", "nvme")
        which = "every" if size <= 1 else "nearly every"
        message = f"sub_group_size {size:g}: {which} parameter is stepped by itself{', and moved by itself' * moved}"
        path = ("zero_optimization", "sub_group_size")
        yield (warning if moved else info)(path, message, help="write 1e9, or leave it out")
