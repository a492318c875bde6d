"""Peaks of a deep model from those of two shallow ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsgen.simulate.values import Moment

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """v(L) = v1 + (v2 - v1) (L - L1) / (L2 - L1)."""

    first: int
    second: int
    wanted: int

    def __call__(self, at_first: int, at_second: int) -> int:
        if self.first == self.second:
            return at_first
        return at_first + round((at_second - at_first) * (self.wanted - self.first) / (self.second - self.first))


def moments(runs: Sequence[Json], layers: int) -> tuple[Moment, ...]:
    """The largest site of each phase, every site at ``layers`` layers by itself: the place of the peak may move."""
    shallow, deep = runs[0], runs[-1]
    line = Line(shallow["layers"], deep["layers"], layers)
    found: dict[str, Moment] = {}
    for site in shallow["sites"]:
        if site not in deep["sites"]:
            continue
        phase, _, place = site.split("/")
        total, parts = _both(shallow["sites"][site], deep["sites"][site], line)
        if phase not in found or total > found[phase].total:
            found[phase] = Moment(name=phase, total=total, parts=parts, site=place)
    return tuple(found.values())


def _both(one: Sequence[Any], other: Sequence[Any], line: Line) -> tuple[int, dict[str, int]]:
    return line(one[0], other[0]), parts(one[1], other[1], line)


def parts(one: Mapping[str, int], other: Mapping[str, int], line: Line) -> dict[str, int]:
    """Each part by itself; what is not there at all is left out."""
    names = [*one, *(name for name in other if name not in one)]
    sizes = {name: line(one.get(name, 0), other.get(name, 0)) for name in names}
    return {name: size for name, size in sizes.items() if size}
