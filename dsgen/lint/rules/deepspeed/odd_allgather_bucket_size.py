from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage, whole
from dsgen.lint.mark import Mark, error, replace
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS318",
    kinds=("deepspeed",),
    about=("allgather_bucket_size",),
    source="deepspeed/runtime/zero/stage_1_and_2.py: allgather_bucket_size must be a multiple of "
    "nccl_start_alignment_factor",
)
def odd_allgather_bucket_size(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An odd allgather_bucket_size at stages 1 and 2: the engine asserts.

    Gathered partitions start on even elements (nccl_start_alignment_factor 2).

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 200000001}}
    ```

    ```json fixed
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 200000002}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 200000002}}
    ```
    """
    size = file.get("zero_optimization", "allgather_bucket_size")
    if whole(size) is None or size % 2 == 0 or stage(file, target) not in (1, 2):
        return
    path = ("zero_optimization", "allgather_bucket_size")
    yield error(
        path,
        f"allgather_bucket_size {size} is odd: the engine asserts at stages 1 and 2",
        help=f"write {size + 1}",
        fix=replace("make it even", path, size + 1),
    )
