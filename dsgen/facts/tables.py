"""Reads a table of facts (CSV beside this file) and finds a row by name, alias or nearest name."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")

_FOLDER = Path(__file__).resolve().parent


def rows(table: str) -> list[dict[str, str]]:
    """All rows of ``dsgen/facts/<table>.csv``, cells as text, an empty cell is ''."""
    import csv  # late: who only finds names needs none

    with open(_FOLDER / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(cell: str) -> float | None:
    """A numeric cell; None where it is empty."""
    return float(cell) if cell else None


def whole(cell: str) -> int | None:
    """A cell that holds a whole number; None where it is empty."""
    return int(cell) if cell else None


def index(items: Iterable[Row], names: Callable[[Row], Iterable[str]]) -> dict[str, Row]:
    """Maps every lower-cased name of every row to it; two rows with one name are a defect of the table."""
    found: dict[str, Row] = {}
    for item in items:
        for name in names(item):
            key = name.lower()
            if found.setdefault(key, item) is not item:
                raise ValueError(f"two rows answer to {name!r}")
    return found


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like ``name``, best first."""
    import difflib  # late: needed only when someone mistyped

    by_lower: Mapping[str, str] = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=0.5)
    return [by_lower[match] for match in matches]
