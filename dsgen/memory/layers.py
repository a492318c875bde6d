"""Works out something for every layer, once for those that are the same object."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from dsgen.shapes.values import Block

Result = TypeVar("Result")


def per_layer(blocks: Sequence[Block], work: Callable[[Block], Result]) -> list[Result]:
    """``work(block)`` for each layer in order. By identity: hashing a block reads all of its tensors."""
    known: dict[int, Result] = {}
    results = []
    for block in blocks:
        key = id(block)
        if key not in known:
            known[key] = work(block)
        results.append(known[key])
    return results
