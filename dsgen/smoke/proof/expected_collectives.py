"""What the ranks have to say to each other in one optimizer step, from the layout alone.

Elements are those of whole tensors: the output of a gather, the input of a reduction. Collectives of fewer than 64
elements (norms, overflow flags, counts) are not gradients or weights and are left out on both sides.

P: trained elements; A: all elements; K: micro-batches per step; W: ranks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
_PADDING = 0.01  # shards of equal size: a few elements per tensor, of tensors of at least 64
_WHOLE_BUCKET = 500_000_000  # elements of one collective where DeepSpeed is not told otherwise


@dataclass(frozen=True, slots=True)
class Expected:
    """Bounds, both inclusive, of what kinds of collectives come to, together, in a step."""

    what: str
    kinds: tuple[str, ...]
    unit: str
    """count or elements."""
    low: float
    high: float
    first_step_too: bool = True


def deepspeed(
    *, stage: int, accumulation: int, trained: int, elements: int, reduce_bucket: int, small_share: float = 0.1
) -> Iterator[Expected]:
    """ZeRO's collectives.

    Gradients (deepspeed/runtime/engine.py:allreduce_gradients): reduced once per step at stages 0 and 1, in each of the
    K micro-steps at 2 and 3, always all P of them; in one collective if the bucket holds them.
    Weights: nothing at stage 0. At 1 and 2 one gather of P after the step (stage_1_and_2.py:step). At 3 each weight at
    least once after a step, at most for each forward and backward pass; what is smaller than the persistence threshold
    stays whole, and what is used again soon stays gathered (partitioned_param_coordinator.py). In the first step the
    order of use is not known yet, and what was fetched for it is let go once more.
    """
    passes = accumulation if stage >= 2 else 1
    yield Expected(
        "gradients reduced", REDUCTIONS, "elements", passes * trained, passes * trained * (1 + _PADDING * (stage == 3))
    )
    if stage == 3:
        once = elements * (1 - small_share)
        most = 2 * accumulation * elements * (1 + _PADDING)
        yield Expected("weights gathered", ("all_gather",), "elements", once, most, first_step_too=False)
        yield Expected("all-reduces of gradients", ("all_reduce",), "count", 0, 0)
        return
    if (reduce_bucket if stage else _WHOLE_BUCKET) >= trained:
        yield Expected("reductions of gradients", REDUCTIONS, "count", passes, passes)
    gathered = trained if stage else 0
    yield Expected("weights gathered", ("all_gather",), "elements", gathered, gathered * (1 + _PADDING))


def fsdp2(
    *, units: Sequence[Mapping[str, Any]], accumulation: int, replicated: bool, reduce_each: bool
) -> Iterator[Expected]:
    """FSDP2's collectives: each unit (a fully_shard call) is gathered and reduced by itself.

    Gathers: a unit that is resharded after its forward pass 2K; the root, which is not, K, for it is resharded after
    each backward pass. Where no unit is resharded after forward (ZeRO stage 2), the generated loop keeps all of them
    until the end of the step: 1 each. Reduce-scatters: units with trained weights, once, or in each micro-batch.
    All-reduces: on a mesh with a dimension to replicate over (HSDP) once per such unit, else none.
    """
    keeps = not any(unit["reshard"] for unit in units)
    gathers = sum(1 if keeps else (2 if unit["reshard"] else 1) * accumulation for unit in units)
    trained = sum(1 for unit in units if unit["trained"])
    reductions = trained * (accumulation if reduce_each else 1)
    all_reduces = trained if replicated else 0
    yield Expected("all-gathers of weights", ("all_gather",), "count", gathers, gathers)
    yield Expected("reduce-scatters of gradients", ("reduce_scatter",), "count", reductions, reductions)
    yield Expected("all-reduces of gradients", ("all_reduce",), "count", all_reduces, all_reduces)


def ddp(*, buckets: int) -> Iterator[Expected]:
    """DDP's reducer: one all-reduce per bucket of gradients, in the micro-batch without no_sync."""
    yield Expected("all-reduces of gradients", ("all_reduce",), "count", buckets, buckets)
