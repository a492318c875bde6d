from collections.abc import Iterator
from math import prod

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import data_parallel_ranks, started, whole
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget

_FACTORS = {"train_micro_batch_size_per_gpu": "micro batch", "gradient_accumulation_steps": "accumulation"}


@rule(
    "DS201",
    kinds=("deepspeed",),
    about=("train_batch_size",),
    source="deepspeed/runtime/config.py:_batch_assertion, _set_batch_related_parameters",
)
def batch_sizes_that_do_not_multiply(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Batch sizes that contradict each other.

    train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data-parallel ranks must hold
    exactly. Data-parallel ranks are the processes (``--world-size``) divided by tensor- and sequence-parallel sizes.
    Without a world size only what no number of ranks can cure is reported.

    ```json bad --world-size 1
    {"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}
    ```

    ```json bad
    {"train_batch_size": 100, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}
    ```

    ```json bad --world-size 8
    {"train_batch_size": 12}
    ```

    ```json good --world-size 2
    {"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}
    ```

    ```json good
    {"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}
    ```
    """
    total = whole(file.get("train_batch_size"))
    given = {key: whole(file.get(key)) for key in _FACTORS if file.get(key) is not None}
    if total is None or None in given.values() or any(is_misspelt(file, target, key) for key in _FACTORS):
        return
    ranks = data_parallel_ranks(file, target)
    known = prod(size for size in given.values() if size is not None)
    complete = len(given) == len(_FACTORS)
    if ranks is None:
        if total % known:
            yield error(
                ("train_batch_size",),
                f"train_batch_size {total} is no multiple of {_product(given)} = {known}: no number of ranks fits",
                help=f"write a multiple of {known}, or leave train_batch_size out: DeepSpeed works it out",
                related=tuple(((key,), "a factor of it") for key in given),
            )
        return
    product = known * ranks
    if total == product or (not complete and total % product == 0):
        return
    sides = f"{_product(given)} x {ranks} = {product}" if given else str(ranks)
    sign = "!=" if complete else "is no multiple of"
    parts = ", ".join([*(_FACTORS[key] for key in given), "data-parallel ranks"])
    fits = f"the numbers fit {total // known} ranks, so check the launcher; or " if total % known == 0 else ""
    yield error(
        ("train_batch_size",),
        f"train_batch_size {total} {sign} {sides} ({parts}): DeepSpeed raises",
        help=f"{fits}leave train_batch_size out: DeepSpeed works it out" if given else f"write a multiple of {ranks}",
        related=(*(((key,), "a factor of it") for key in given), *started(target)),
    )


def _product(given: dict[str, int | None]) -> str:
    return " x ".join(str(size) for size in given.values())
