from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage, started, whole
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS601",
    kinds=("deepspeed",),
    about=("zero_hpz_partition_size",),
    source="deepspeed/utils/groups.py:_create_zero_param_parallel_group (_ensure_divisibility)",
)
def hpz_size_that_does_not_divide_the_ranks(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """zero_hpz_partition_size must divide the number of ranks, and is meant to be the GPUs of one node.

    The second shard of the weights exists so that gathers stay within a node; a group across nodes costs memory and
    saves nothing. ``--gpus-per-node`` lets this be checked, too.

    ```json bad --world-size 24
    {"train_batch_size": 24, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 16}}
    ```

    ```json bad --world-size 16 --gpus-per-node 8
    {"train_batch_size": 16, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 16}}
    ```

    ```json good --world-size 16 --gpus-per-node 8
    {"train_batch_size": 16, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}
    ```
    """
    size = whole(file.get("zero_optimization", "zero_hpz_partition_size", default=1))
    if size is None or size == 1 or stage(file, target) != 3:
        return
    path = ("zero_optimization", "zero_hpz_partition_size")
    per_node = target.gpus_per_node
    help = f"write {per_node}, the GPUs of a node" if per_node else "write the number of GPUs of a node"
    help += f"; the second copy costs {_copy(target, per_node)} on every GPU"
    world = target.world_size
    if world is not None and world % min(size, world):
        yield error(
            path,
            f"{world} ranks are not divisible by zero_hpz_partition_size {size}: DeepSpeed raises"
            + (f", and groups of {size} would span nodes of {per_node} GPUs" if per_node and size > per_node else ""),
            help=help,
            related=started(target),
        )
    elif per_node is not None and size > per_node:
        yield warning(
            path, f"groups of {size} span nodes of {per_node} GPUs: gathers cross the network after all", help=help
        )


def _copy(target: LintTarget, per_node: int | None) -> str:
    """2 bytes a parameter over the ranks that share the copy."""
    formula = f"2 bytes x parameters / {per_node or 'that number'}"
    if target.model is None or per_node is None:
        return formula
    from dsgen.lint.amounts import in_bytes

    return f"{formula} = {in_bytes(2 * target.model.parameters / per_node)}"
