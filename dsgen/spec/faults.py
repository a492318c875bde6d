"""What is wrong with a spec, gathered first and worded for people at the end."""

from collections.abc import Iterable
from dataclasses import dataclass

from dsgen.errors import InputError, Place, Problem
from dsgen.facts.tables import nearest
from dsgen.spec.values import KeyPath
from dsgen.spec.words import listed

MOST = 20
"""Problems shown at once; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem, before the names nearest to ``word`` are looked up (which costs too much for thousands)."""

    path: KeyPath
    place: Place
    message: str
    help: str = ""
    word: str = ""
    """What the user wrote where one of ``known`` was expected."""
    known: tuple[str, ...] = ()
    unsupported: bool = False
    """Well-formed, but nothing obeys it yet."""

    def problem(self) -> Problem:
        # A word of more than this length resembles no key, and comparing takes time.
        near = nearest(self.word[:64], self.known) if self.word else []
        helps = [f"did you mean {listed(near)}?" if near else "", f"allowed: {self.help}" if self.word else self.help]
        return Problem(self.message, self.place, " ".join(filter(None, helps)) or None)


def input_error(faults: Iterable[Fault]) -> InputError:
    """All of them as one error, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: (fault.place.line or 0, fault.place.column or 0))
    problems = [fault.problem() for fault in ordered[:MOST]]
    if len(ordered) > MOST:
        problems.append(Problem(f"and {len(ordered) - MOST} more problems"))
    return InputError(*problems)
