"""What a first spec is made of, wherever it comes from."""

from dataclasses import dataclass
from typing import Any

from dsgen.reading import SpecPath


@dataclass(frozen=True, slots=True)
class Given:
    """One line of the spec."""

    path: SpecPath
    value: Any
    source: str = ""
    """Who says so, for the comment beside it."""
    is_default: bool = False
    """Nobody wrote it: it disagrees with nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that nobody could fill in: it stands in the spec as a comment."""

    path: SpecPath
    example: str
    why: str
    required: bool = False
    """Without it a plan can't be made."""
    hint: bool = False
    """Only an example of what could be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one source, or all of them, brought."""

    given: tuple[Given, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know besides: what is left out, what disagrees, what could not be seen."""
    sources: tuple[str, ...] = ()

    def get(self, *path: str) -> Any:
        """The value at a path; None where it is not given."""
        return next((each.value for each in self.given if each.path == path), None)


def merged(*all_findings: Findings) -> Findings:
    """All of them; of two that say the same thing the first counts, and a disagreement is noted."""
    given: dict[SpecPath, Given] = {}
    notes: list[str] = []
    for findings in all_findings:
        notes += findings.notes
        for each in findings.given:
            first = given.setdefault(each.path, each)
            if first is not each and not each.is_default and not _same(first.value, each.value):
                name = ".".join(each.path)
                notes.append(
                    f"{name}: {first.source or 'the first'} says {first.value}, {each.source or 'another'} says "
                    f"{each.value}; the first is written"
                )
    unknown: dict[SpecPath, Unknown] = {}
    for findings in all_findings:
        for missing in findings.unknown:
            if missing.path not in given:
                unknown.setdefault(missing.path, missing)
    return Findings(
        given=tuple(given.values()),
        unknown=tuple(unknown.values()),
        notes=tuple(dict.fromkeys(notes)),
        sources=tuple(dict.fromkeys(source for findings in all_findings for source in findings.sources)),
    )


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or str(one).lower() == str(other).lower()
