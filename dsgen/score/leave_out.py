"""Whether a named constant is tuned to a source: errors with constants that all sources give, and without each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from dsgen.facts.constants import constant
from dsgen.facts.tunable import Kind, names_of
from dsgen.score.fit import STATED, Held, Row, Trust, estimate, leave_one_out
from dsgen.score.memory_fit import memory_rows
from dsgen.score.runs import Run
from dsgen.score.throughput_fit import ESTIMATED, observations

LIMIT = 1.3
"""Times the error with a source that the error without it may be (the project's bound)."""
_FREE = Trust(freedom=log(2), noise=0.05)
"""Constants of memory have sources that differ by halves and doubles; figures stray by some 5 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """One kind of figure."""

    estimated: Mapping[str, float]
    """What all sources together give for each constant, over what is stated."""
    sources: Mapping[str, Held]

    @property
    def within(self) -> float:
        """Mean error, sources alike, with constants from all of them."""
        return sum(held.within for held in self.sources.values()) / len(self.sources)

    @property
    def without(self) -> float:
        """Likewise, of each source with constants from the others."""
        return sum(held.without for held in self.sources.values()) / len(self.sources)

    @property
    def ratio(self) -> float:
        """``without`` over ``within``."""
        return self.without / self.within if self.within else 1.0


def left_out(runs: Sequence[Run]) -> dict[Kind, LeftOut | None]:
    """Of memory and step time; None where fewer than two sources have figures."""
    return {
        "memory": _kind(memory_rows(runs), names_of("memory"), _FREE),
        "time": _kind(observations(runs), ESTIMATED, STATED),
    }


def _kind(rows: Sequence[Row], names: Sequence[str], trust: Trust) -> LeftOut | None:
    sources = leave_one_out(rows, names, trust)
    if not sources:
        return None
    found = estimate(rows, names, trust)
    return LeftOut(estimated={name: value / constant(name) for name, value in found.items()}, sources=sources)
