"""Parts of one moment, and the largest of several."""

from collections.abc import Mapping

from dsgen.memory.ledger import Moment, Part

Parts = dict[Part, int]


def moment(name: str, parts: Mapping[Part, int]) -> Moment:
    """A moment without the parts that are zero."""
    return Moment(name, {part: size for part, size in parts.items() if size})


def largest(name: str, *candidates: Mapping[Part, int]) -> Moment:
    """The moment of the largest of ``candidates``."""
    return moment(name, max(candidates, key=lambda parts: sum(parts.values())))
