"""Works out something for every layer, once for those that are the same object; and the layers at which a sum over
layers can be largest."""

from collections.abc import Callable
from typing import TypeVar

from dsgen.memory.derived import derived
from dsgen.shapes.values import Block, Shapes

Result = TypeVar("Result")


def per_layer(shapes: Shapes, work: Callable[[Block], Result]) -> list[Result]:
    """``work(block)`` for each layer in order."""
    results = [work(block) for block in shapes.kinds]
    return [results[kind] for kind in shapes.order]


def turning_points(shapes: Shapes, alike: bool) -> tuple[int, ...]:
    """Layers, last first, among which the largest moment of a backward pass is.

    ``alike``: equal layers keep equally much. Then over equal layers in a row whatever is kept, gathered or computed
    grows by the same from layer to layer, and the larger of two such sums is largest at an end. The layer beside each
    end is there, too: the first and the last of a row have neighbours of another kind, or none. Otherwise all.
    """
    if not alike:
        return tuple(range(len(shapes.blocks) - 1, -1, -1))
    return derived(shapes, "turning points", lambda: _ends(shapes.order))


def _ends(order: tuple[int, ...]) -> tuple[int, ...]:
    last = len(order) - 1
    begins = [index for index in range(1, last + 1) if order[index - 1] != order[index]]
    ends = [0, last, *begins, *(index - 1 for index in begins)]
    near = {other for index in ends for other in (index - 1, index, index + 1) if 0 <= other <= last}
    return tuple(sorted(near, reverse=True))
