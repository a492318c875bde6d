"""Micro-batch and accumulation: every pair that gives the global batch exactly, and the largest that fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from dsgen.plan import Wishes
from dsgen.planner.refusal import WishError
from dsgen.spec.values import Training

T = TypeVar("T")

# Tokens in one micro-batch beyond which a GPU gains nothing. A matrix product of T tokens with an h x h
# matrix in 16 bits does T h / (2 T + h) floating point operations per byte moved; at T = 8192 and
# h = 4096 that is 1638, five times what an H100 needs to be bound by arithmetic (989e12 / 3.35e12 = 295).
SATURATING_TOKENS = 8192

# The largest micro-batch that is looked for where nothing else bounds it.
MOST_SEQUENCES = 4096


@dataclass(frozen=True, slots=True)
class Split:
    """How one rank's sequences of a step are cut: ``micro_batch`` at a time, ``accumulation`` times."""

    micro_batch: int
    accumulation: int


def global_batch_of(training: Training, sequence_length: int, data_parallel: int) -> int | None:
    """Sequences per optimizer step as asked for, in sequences or tokens; None where the spec leaves it open."""
    if training.global_tokens is None:
        return training.global_batch
    if training.global_tokens % (sequence_length * data_parallel):
        sequences, rest = divmod(training.global_tokens, sequence_length)
        lower, upper = _neighbours(training.global_tokens, sequence_length * data_parallel)
        what = f"no whole number of sequences of {sequence_length} tokens"
        if not rest:
            what = f"{sequences} x {sequence_length}, which {data_parallel} data-parallel ranks can't share equally"
        raise WishError(
            ("training", "global_tokens"),
            f"global_tokens {training.global_tokens} is {what}",
            help=f"the nearest that {data_parallel} data-parallel ranks can do are {_either(lower, upper)}",
        )
    return training.global_tokens // sequence_length


def splits(
    wishes: Wishes, global_batch: int | None, data_parallel: int, sequence_length: int
) -> tuple[tuple[Split, ...], tuple[str, ...]]:
    """Every legal split, smallest micro-batch first, and what was assumed.

    With a global batch: all pairs whose product with ``data_parallel`` is the global batch.
    Without: accumulation 1 (or the wish), and micro-batches that are powers of two, or any where "max" is wished.
    """
    micro = wishes.micro_batch if isinstance(wishes.micro_batch, int) else None
    if global_batch is None:
        return _open_splits(wishes, sequence_length)
    if global_batch % data_parallel:
        lower, upper = _neighbours(global_batch, data_parallel)
        raise WishError(
            ("training", "global_batch"),
            f"a global batch of {global_batch} can't be shared equally by {data_parallel} data-parallel ranks",
            help=f"the nearest that can are {_either(lower, upper)}",
        )
    share = global_batch // data_parallel
    possible = tuple(
        Split(size, share // size)
        for size in _divisors(share)
        if micro in (None, size) and wishes.accumulation in (None, share // size)
    )
    if not possible:
        raise _no_split(micro, wishes.accumulation, global_batch, data_parallel)
    return possible, ()


def _open_splits(wishes: Wishes, sequence_length: int) -> tuple[tuple[Split, ...], tuple[str, ...]]:
    accumulation = wishes.accumulation or 1
    if isinstance(wishes.micro_batch, int):
        return (Split(wishes.micro_batch, accumulation),), ()
    if wishes.micro_batch == "max":
        return _all_sizes(accumulation), ()
    most = max(1, SATURATING_TOKENS // sequence_length)
    sizes = [2**power for power in range(most.bit_length())]
    note = (
        f"No global batch is given: accumulation {accumulation} and the largest micro-batch that fits, a power of two "
        f"of at most {SATURATING_TOKENS} tokens, beyond which a GPU is no faster. State global_batch to have a "
        "training run that does not depend on the hardware."
    )
    return tuple(Split(size, accumulation) for size in sizes), (note,)


@cache
def _all_sizes(accumulation: int) -> tuple[Split, ...]:
    """Every micro-batch: asked for once for each way to split ranks, and for each change that might help."""
    return tuple(Split(size, accumulation) for size in range(1, MOST_SEQUENCES + 1))


def _no_split(micro: int | None, accumulation: int | None, global_batch: int, data_parallel: int) -> WishError:
    share = global_batch // data_parallel
    name, value = ("micro_batch", micro) if micro is not None else ("accumulation", accumulation)
    if micro is not None and accumulation is not None:
        message = (
            f"micro_batch {micro} x accumulation {accumulation} x {data_parallel} data-parallel ranks is "
            f"{micro * accumulation * data_parallel}, not the global batch {global_batch}"
        )
    else:
        message = (
            f"{name} {value} does not divide the {share} sequences that each of {data_parallel} data-parallel ranks "
            f"has of the global batch {global_batch}"
        )
    return WishError(("want", name), message, f"what divides it: {', '.join(map(str, _divisors(share)))}")


def largest(choices: Sequence[T], fits: Callable[[T], bool]) -> T | None:
    """The last of ``choices`` that fits, where everything before one that fits does too; None if none does.

    Memory grows with the micro-batch, so bisection finds it in log2 many trials.
    """
    if not choices or not fits(choices[0]):
        return None
    good, bad = 0, len(choices)
    if fits(choices[-1]):
        return choices[-1]
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(choices[middle]) else (good, middle)
    return choices[good]


def _divisors(number: int) -> list[int]:
    low = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return low + [number // size for size in reversed(low) if size * size != number]


def _neighbours(number: int, step: int) -> tuple[int, int]:
    """The nearest positive multiples of ``step`` below and above."""
    return number // step * step, (number // step + 1) * step


def _either(lower: int, upper: int) -> str:
    return f"{lower} and {upper}" if lower else f"{upper}"
