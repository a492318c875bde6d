"""A calibration: constants that a team's own runs tuned for its cluster, as ``dsgen calibrate`` writes them.

The file is read with suspicion: only names of tunable.csv, in their unit, within their bounds.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dsgen.errors import InputError, Place, Problem
from dsgen.facts.constants import constants_as
from dsgen.facts.tables import nearest
from dsgen.facts.tunable import tunable

VERSION = 1
_LARGEST = 1_000_000
_ENDLESS = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a file says."""

    file: str
    values: Mapping[str, float]
    """Constants, sizes in bytes."""
    rows: Mapping[str, int]
    """How many runs each rests on."""
    source: str
    """The table of runs that it was made from."""
    sha256: str
    """Of that table."""
    runs: int
    """Runs in it."""

    @property
    def words(self) -> str:
        """In one clause."""
        fields = ", ".join(self.values)
        return f"constants of {self.file} ({self.runs} runs of {self.source}): {fields}"


def read_calibration(file: str) -> Calibration:
    """Raises InputError for whatever is not what ``dsgen calibrate`` writes."""
    place = Place(file)
    try:
        with open(file, "rb") as opened:
            data = opened.read(_LARGEST + 1)  # a device has no end
    except OSError as error:
        raise InputError.at(f"cannot be read: {error.strerror or error}", place) from error
    if len(data) > _LARGEST:
        raise InputError.at(f"has more than {_LARGEST} bytes, a calibration a few thousand", place)
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError.at("is no calibration: it is no JSON in UTF-8", place, _AGAIN) from error
    except json.JSONDecodeError as error:
        raise InputError.at(f"is no JSON: {error.msg}", Place(file, error.lineno, error.colno), _AGAIN) from error
    except ValueError as error:
        raise InputError.at(str(error), place, _AGAIN) from error
    return _checked(file, document)


_AGAIN = "dsgen calibrate RUNS.csv -o FILE writes one"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise ValueError(f"says {twice!r} twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number that a constant can have")


def _checked(file: str, document: Any) -> Calibration:
    place = Place(file)
    if not isinstance(document, dict) or "constants" not in document:
        raise InputError.at("is no calibration: it has no 'constants'", place, _AGAIN)
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        help = "make it anew with this dsgen: dsgen calibrate RUNS.csv -o FILE"
        raise InputError.at(f"is a calibration of version {version!r}; this dsgen reads {VERSION}", place, help)
    entries, source = document["constants"], document.get("source")
    problems: list[Problem] = []
    values: dict[str, float] = {}
    rows: dict[str, int] = {}
    if not isinstance(entries, dict) or not entries:
        problems.append(Problem("constants: must be an object that names at least one", place, _AGAIN))
        entries = {}
    for name, entry in entries.items():
        said = _wrong(name, entry)
        if said is None:
            values[name], rows[name] = entry["value"] * tunable()[name].scale, entry["rows"]
        else:
            problems.append(Problem(f"constants.{name}: {said[0]}", place, said[1]))
    if not isinstance(source, dict) or not _describes(source):
        help = 'for example {"file": "runs.csv", "sha256": "...", "rows": 40}'
        raise InputError(*problems, Problem("source: must say file, sha256 and rows of the runs", place, help))
    if problems:
        raise InputError(*problems)
    return Calibration(
        file=Path(file).name,
        values=values,
        rows=rows,
        source=source["file"],
        sha256=source["sha256"],
        runs=source["rows"],
    )


def _wrong(name: str, entry: Any) -> tuple[str, str | None] | None:
    known = tunable().get(name)
    if known is None:
        near = nearest(name, tunable())
        return "is no constant that can be tuned", f"did you mean {' or '.join(near)}?" if near else None
    if not isinstance(entry, dict) or not {"value", "unit", "rows"} <= entry.keys():
        return "must say value, unit and rows", None
    value, unit = entry["value"], entry["unit"]
    if unit != known.constant.unit:
        return f"is in {unit!r}, but {name} is in {known.constant.unit!r}", f"write it in {known.constant.unit}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is no number", None
    # JSON's integers have no end, and its 1e999 is infinite.
    if not known.least <= value <= known.most:
        shown = f"{value:g}" if abs(value) < _ENDLESS else "so large a number"
        return f"{shown} {unit} is not between {known.least:g} and {known.most:g}", "no cluster is like that"
    if isinstance(entry["rows"], bool) or not isinstance(entry["rows"], int) or entry["rows"] < 1:
        return f"rests on {entry['rows']!r} runs", "at least 1"
    return None


def _describes(source: Mapping[str, Any]) -> bool:
    text = all(isinstance(source.get(key), str) and source[key] for key in ("file", "sha256"))
    rows = source.get("rows")
    return text and isinstance(rows, int) and not isinstance(rows, bool) and rows >= 1


_CURRENT: ContextVar[Calibration | None] = ContextVar("calibration", default=None)


@contextmanager
def calibrated(calibration: Calibration) -> Iterator[None]:
    """Within it the calibration's constants are read, and ``current`` names it."""
    token = _CURRENT.set(calibration)
    try:
        with constants_as(calibration.values):
            yield
    finally:
        _CURRENT.reset(token)


def current() -> Calibration | None:
    """The calibration in force."""
    return _CURRENT.get()
