"""Where in a step the training is: phase, micro-batch and block. Peaks are kept for each such site.

Blocks are named by their distance from the nearer end, so that models of different depth have the same sites.
"""

import weakref
from typing import Any

from dsgen.workers.simulation.tracker import Tracker

MIDDLE = "between"
"""Blocks far from both ends."""
EMBEDDING, OUTSIDE = "embedding", "outside the blocks"


class Sites:
    """Tells the tracker where the training is."""

    def __init__(self, tracker: Tracker, margin: int) -> None:
        """``margin``: how many blocks at each end have sites of their own."""
        self._tracker = tracker
        self._margin = margin
        self._phase = ""
        self._micro = 0
        self._outputs: weakref.WeakSet[Any] = weakref.WeakSet()

    def enter(self, phase: str, micro: int = 0) -> None:
        """A phase begins outside the blocks; an empty name: nothing is recorded."""
        self._phase, self._micro = phase, micro
        self.at(OUTSIDE)

    def at(self, place: str) -> None:
        """The training gets to a place."""
        self._tracker.site = f"{self._phase}/{self._micro}/{place}" if self._phase else ""

    def watch(self, blocks: Any, embedding: Any) -> None:
        """Follows the passes through a model, before anything is wrapped around its modules."""
        count = len(blocks)
        for index, block in enumerate(blocks):
            self._follow(block, self._name(index, count))
        self._follow(embedding, EMBEDDING)

    def _name(self, index: int, count: int) -> str:
        if index < self._margin:
            return f"block {index}"
        behind = count - index
        return f"block -{behind}" if behind <= self._margin else MIDDLE

    def _follow(self, module: Any, place: str) -> None:
        forward = module.forward

        def followed(*args: Any, **kwargs: Any) -> Any:
            self.at(place)
            # What FSDP has put around the block comes between its input's gradient and the block before.
            first: Any = args[0] if args else None
            if getattr(first, "requires_grad", False) and id(first) not in self._known():
                first.register_hook(lambda _: self.at(f"{place}, behind"))
            result = forward(*args, **kwargs)
            if result.requires_grad:
                result.register_hook(lambda _: self.at(place))
                self._outputs.add(result)
            self.at(f"{place}, after")
            return result

        module.forward = followed

    def _known(self) -> set[int]:
        return {id(output) for output in self._outputs}
