"""Reads measured runs: one CSV row is one run. Columns are those of a table of published measurements; see columns.py.

What is wrong in a file is said with its line, and costs that row only; a missing column is an empty cell.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from dsgen.errors import InputError, Place, Problem
from dsgen.score.columns import COUNTS, KNOWN, NUMBERS, REQUIRED, TEXTS

if TYPE_CHECKING:
    import _csv

_LONGEST_CELL = 1_000_000
# Some hundred thousand runs. The bound keeps a device, or a file of data that was meant, from filling the memory.
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """One row: cells by column, empty where the source says nothing."""

    place: Place
    row_id: str
    source: str
    reference: str
    """Where it was published."""
    texts: Mapping[str, str]
    """Lower case, outer blanks removed; every text column is there."""
    counts: Mapping[str, int | None]
    """Whole numbers from 1."""
    numbers: Mapping[str, float | None]
    """Above 0."""
    other: Mapping[str, str]
    """Columns that we don't know, as they are."""

    @property
    def fits(self) -> bool:
        """The run went through; otherwise it ran out of memory."""
        return self.texts["outcome"] != "oom"


@dataclass(frozen=True, slots=True)
class Runs:
    """A whole file."""

    rows: tuple[Run, ...]
    problems: tuple[Problem, ...]
    """Rows that were left out, each with the reason."""
    unknown_columns: tuple[str, ...]
    sha256: str
    """Of the file's bytes."""


def read_runs(file: str) -> Runs:
    """All rows of ``file``. Raises InputError where it is no CSV with a header that names runs."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        text = "" if len(data) > _MOST_BYTES else data.decode("utf-8-sig")
    except OSError as error:
        raise InputError.at(f"cannot be read: {error.strerror or error}", Place(file)) from error
    except UnicodeDecodeError as error:
        raise InputError.at("is no UTF-8 text", Place(file), "save it as CSV in UTF-8") from error
    if len(data) > _MOST_BYTES:
        raise InputError.at(f"is larger than {_MOST_BYTES >> 20} MiB: no table of runs is", Place(file))
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=None), strict=True)
    problems: list[Problem] = []
    rows: list[Run] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check(file, header)
        seen: dict[str, int] = {}
        for place, cells in _numbered(file, reader):
            run = _run(place, header, cells, problems)
            if run is None:
                continue
            first = seen.setdefault(run.row_id, place.line or 0)
            if first != place.line:
                problems.append(Problem(f"row_id {run.row_id!r} stands in line {first} already", place))
                continue
            rows.append(run)
    except csv.Error as error:
        raise InputError.at(
            f"is no CSV: {error}", Place(file, reader.line_num), "quote cells that hold quotes"
        ) from error
    unknown = tuple(name for name in header if name and name not in KNOWN)
    return Runs(tuple(rows), tuple(problems), unknown, hashlib.sha256(data).hexdigest())


def _numbered(file: str, reader: "_csv.Reader") -> Iterator[tuple[Place, list[str]]]:
    """Rows with the line on which each begins; a cell may hold line breaks."""
    begin = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield Place(file, begin), cells
        begin = reader.line_num + 1


def _check(file: str, header: list[str]) -> None:
    twice = sorted({name for name in header if name and header.count(name) > 1})
    missing = [name for name in REQUIRED if name not in header]
    problems = [Problem(f"column {name!r} stands twice", Place(file, 1)) for name in twice]
    if missing:
        from dsgen.spec.words import listed

        problems.append(
            Problem(
                f"no column {listed(missing, 'and')}",
                Place(file, 1),
                "the first line names the columns of a run: dsgen show columns lists them",
            )
        )
    if problems:
        raise InputError(*problems)


def _run(place: Place, header: list[str], cells: list[str], problems: list[Problem]) -> Run | None:
    if len(cells) != len(header):
        problems.append(Problem(f"has {len(cells)} cells under {len(header)} columns", place))
        return None
    row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    wrong: list[str] = []
    counts = {name: _count(name, row.get(name, ""), wrong) for name in COUNTS}
    numbers = {name: _number(name, row.get(name, ""), wrong) for name in NUMBERS}
    texts = {name: row.get(name, "").lower() for name in TEXTS}
    texts["model"] = row.get("model", "")
    if not row["row_id"]:
        wrong.append("row_id is empty")
    if texts["outcome"] not in ("fits", "oom", ""):
        wrong.append(f"outcome {texts['outcome']!r} is neither fits nor oom")
    if wrong:
        problems.extend(Problem(message, place) for message in wrong)
        return None
    other = {name: cell for name, cell in row.items() if name not in KNOWN}
    return Run(place, row["row_id"], row.get("source_id", ""), row.get("source_ref", ""), texts, counts, numbers, other)


def _count(name: str, cell: str, wrong: list[str]) -> int | None:
    number = _number(name, cell, wrong)
    if number is None:
        return None
    if number != int(number):
        wrong.append(f"{name} {cell!r} is no whole number")
        return None
    return int(number)


def _number(name: str, cell: str, wrong: list[str]) -> float | None:
    if not cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        wrong.append(f"{name} {cell!r} is no number")
        return None
    if not isfinite(number) or not 0 < number < 1e15:
        wrong.append(f"{name} {cell!r} is out of range")
        return None
    return number
