"""What depends on the model and little else, worked out once: a planner weighs thousands of plans of one model."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from dsgen.shapes.values import Shapes

Result = TypeVar("Result")
_MOST = 4096
"""Entries after which a model's are dropped: a search over sequence lengths makes new ones without end."""


def derived(shapes: Shapes, key: Hashable, work: Callable[[], Result]) -> Result:
    """``work()``, or what it gave for these shapes and ``key`` before. ``key`` names everything but the shapes that
    ``work`` reads, and no constant of constants.csv may be among it: a calibration changes those."""
    known = shapes.derived
    if key not in known:
        if len(known) >= _MOST:
            known.clear()
        known[key] = work()
    return known[key]  # type: ignore[no-any-return]
