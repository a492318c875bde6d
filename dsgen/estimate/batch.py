"""Batch sizes as DeepSpeed completes them (deepspeed/runtime/config.py:_set_batch_related_parameters)."""

from dataclasses import dataclass

from dsgen.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Batch:
    """Micro-batch and accumulation of a rank."""

    micro_batch: int
    accumulation: int


def complete(train: int | None, micro: int | None, accumulation: int | None, data_parallel: int) -> Batch | None:
    """Two of the three give the third, one of the first two gives the others with accumulation 1; None where neither
    is known.

    Raises RefusedError where train is not micro x accumulation x data_parallel, as DeepSpeed does.
    """
    if train is not None and micro is not None:
        accumulation = accumulation or train // micro // data_parallel
    elif train is not None:
        accumulation = accumulation or 1
        micro = train // data_parallel // accumulation
    elif micro is not None:
        accumulation = accumulation or 1
        train = micro * accumulation * data_parallel
    else:
        return None
    product = micro * accumulation * data_parallel
    if train != product or not train:
        raise RefusedError.at(
            f"train_batch_size {train} is not micro-batch {micro} x accumulation {accumulation} x {data_parallel} "
            f"data-parallel ranks = {product}: DeepSpeed refuses that",
            help=_cure(train, micro * accumulation, data_parallel),
        )
    return Batch(micro, accumulation)


def _cure(train: int, per_rank: int, data_parallel: int) -> str:
    if per_rank and train % per_rank == 0:
        ranks = train // per_rank
        return (
            f"it is right for {ranks} data-parallel rank{'s' * (ranks > 1)}: start as many, or leave train_batch_size "
            "out, and DeepSpeed derives it"
        )
    return f"leave train_batch_size out, and DeepSpeed derives it; or write a multiple of {data_parallel}"
