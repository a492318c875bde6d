"""Whether a named constant is tuned to a source: errors with constants that all sources give, and without each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from dsgen.facts.constants import constant
from dsgen.facts.tunable import Kind, names_of
from dsgen.score import throughput_fit
from dsgen.score.fit import Held, Trust, estimate, leave_one_out
from dsgen.score.memory_fit import memory_rows
from dsgen.score.runs import Run
from dsgen.score.throughput_fit import observations

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
    """Of memory, whose constants have sources other than runs, and step time; None where fewer than two sources have
    figures."""
    memory, time, names = memory_rows(runs), observations(runs), names_of("memory")
    return {
        "memory": _kind(leave_one_out(memory, names, _FREE), lambda: estimate(memory, names, _FREE)),
        "time": _kind(throughput_fit.leave_one_out(time), lambda: throughput_fit.from_priors(time)),
    }


def _kind(sources: Mapping[str, Held], found: Callable[[], Mapping[str, float]]) -> LeftOut | None:
    if not sources:
        return None
    return LeftOut(estimated={name: value / constant(name) for name, value in found().items()}, sources=sources)
