"""How many gradients may be added up in a type before most of what is added is rounded away."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the linter asks too_many of a file, and starts faster without the plan
    from dsgen.plan import Plan, Precision

# Bits of the significand, the implicit one included (torch.finfo(...).eps is 2^(1 - bits)).
BITS: "dict[Precision, int]" = {"fp32": 24, "fp16": 11, "bf16": 8}

# Of what is added at the end of a sum, so many bits are to arrive: it is rounded by an eighth of itself at most.
_ARRIVE = 3


def too_many(precision: "Precision") -> int:
    """Micro-batches that should not be added up in this type: 2^(bits - 3), 32 in bf16, 256 in fp16.

    n like gradients add up to n times one of them, whose last bit is worth n times as much: the last one added loses
    log2 n of its bits. Gradients of varying sign lose fewer, since their sum stays smaller.
    """
    return 1 << (BITS[precision] - _ARRIVE)


def sums_coarsely(plan: "Plan") -> bool:
    """Whether the plan adds up too many micro-batches in its compute type."""
    return not plan.sums_apart and plan.accumulation >= too_many(plan.precision)
