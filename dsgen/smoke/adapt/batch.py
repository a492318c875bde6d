"""Batch sizes for this many processes: small, and equal to accumulation x micro-batch x data-parallel ranks."""

from typing import Any

from dsgen.smoke.adapt.edits import Edits

# Two of each is the least that shows a mistake in batching or accumulation.
MICRO_BATCH = 2
ACCUMULATION = 2

_TOTAL, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


def shrink(edits: Edits, data_parallel: int) -> None:
    """Rewrites the three batch sizes; those that are wrong for any number of processes stay, for DeepSpeed to say so.

    train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x world size
    (deepspeed/runtime/config.py, ``_batch_assertion``). The file's own world size is not known.
    """
    total, micro, steps = edits.get(_TOTAL), edits.get(_MICRO), edits.get(_STEPS)
    given = [value for value in (total, micro, steps) if value is not None]
    if not given or not all(_is_count(value) for value in given):
        return
    if total is not None and total % ((micro or 1) * (steps or 1)) != 0:
        return
    new_micro = None if micro is None else min(micro, MICRO_BATCH)
    new_steps = None if steps is None else min(steps, ACCUMULATION)
    if total is not None:
        if micro is not None and steps is None:
            rounds = min(max(1, total // (micro * data_parallel)), ACCUMULATION)
            new_total = min(micro, MICRO_BATCH) * rounds * data_parallel
        else:
            per_round = max(1, total // ((steps or 1) * data_parallel))
            new_total = (new_micro or min(per_round, MICRO_BATCH)) * (new_steps or 1) * data_parallel
        edits.set(_TOTAL, new_total, f"for {data_parallel} data-parallel ranks and small batches")
    if new_micro is not None:
        edits.set(_MICRO, new_micro, "a small batch is enough")
    if new_steps is not None:
        edits.set(_STEPS, new_steps, f"{ACCUMULATION} micro-steps show accumulation as well as more")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
