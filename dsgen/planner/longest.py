"""``sequence_length: max``: the longest sequence for which any plan fits."""

from collections.abc import Callable

from dsgen.errors import ProblemsError
from dsgen.planner.micro_batch import largest
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Training

# Lengths are multiples of this: tiles of attention kernels, and what Ulysses can divide (a node has few more GPUs).
STEP = 256

# Where neither the model nor memory sets an end.
MOST_TOKENS = 2**22


def longest(training: Training, architecture: Architecture, fits: Callable[[int], bool]) -> tuple[int, str]:
    """Tokens per sequence, and what bounds them; the shortest that may be where none fits.

    Memory grows with the length, so bisection finds the longest. The model's own positions are an end: what it was not
    trained for, nobody asks for by "max".
    """
    limit = architecture.max_positions or MOST_TOKENS
    choices = [length for length in range(STEP, limit + 1, STEP) if _divides(length, training)] or [limit]
    if choices[-1] != limit and _divides(limit, training):
        choices.append(limit)
    found = largest(choices, _quiet(fits))
    if found is None:
        return choices[0], f"sequence_length max: not even {choices[0]} tokens fit"
    end = "all positions of the model" if found == limit else f"of the model's {limit}; more does not fit"
    if architecture.max_positions is None:
        end = "the model sets no end" if found == limit else "more does not fit"
    return found, f"sequence_length max: {found} tokens, {end}."


def _divides(length: int, training: Training) -> bool:
    return training.global_tokens is None or training.global_tokens % length == 0


def _quiet(fits: Callable[[int], bool]) -> Callable[[int], bool]:
    """A length whose batch the ranks can't share does not fit."""

    def answer(length: int) -> bool:
        try:
            return fits(length)
        except ProblemsError:
            return False

    return answer
