"""Versions of the libraries that read what dsgen writes: one row of versions.csv each."""

import re
from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One library: the newest version known, the one that the tests really execute, the oldest supported."""

    name: str
    newest: str
    executed: str
    oldest: str
    source: str


@cache
def libraries() -> dict[str, Library]:
    """Every library by name, in the table's order."""
    return {row["library"]: _library(row) for row in rows("versions")}


def _library(row: dict[str, str]) -> Library:
    return Library(
        name=row["library"],
        newest=row["newest"],
        executed=row["executed"],
        oldest=row["oldest"],
        source=row["source"],
    )


def version_key(version: str) -> tuple[int, ...]:
    """Orders release versions: "0.19.8" < "0.19.10"; "2.13" equals "2.13.0", "2.13.0+cpu" equals "2.13.0".

    A pre-release (2.14.0rc1, 0.19.9.dev3) counts as the release that it leads to: what a library
    forbids or allows is there before the release is.
    """
    release = re.match(r"v?(\d+(?:\.\d+)*)", version.strip())
    if release is None:
        raise ValueError(f"not a version: {version!r}")
    numbers = [int(number) for number in release.group(1).split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
