"""A baseline: the findings that an old repository has already, so that only new ones stop people.

Findings are known again by file, code and what they are about (the keys to the value in a config, the line's text in
code), not by line numbers: those change with every edit above.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from dsgen.errors import InputError, Place
from dsgen.lint.finding import Finding

# A hundred thousand findings. The bound keeps a device, or another file that was meant, from being read to its end.
_MOST_BYTES = 16 << 20

_Entry = tuple[str, str, str]
"""File (relative to the baseline's folder), code, what it is about."""


class Baseline:
    """Findings that are known; each hides one."""

    def __init__(self, folder: Path, known: Mapping[_Entry, int]) -> None:
        self._folder = folder
        self._left = Counter(known)

    def new(self, findings: Iterable[Finding], text: str) -> list[Finding]:
        """The findings of one file that are not known."""
        lines = text.splitlines()
        return [finding for finding in findings if not self._knows(_entry(finding, lines, self._folder))]

    def _knows(self, entry: _Entry) -> bool:
        known = self._left[entry] > 0
        if known:
            self._left[entry] -= 1
        return known

    def stale(self, files: Iterable[str]) -> int:
        """How many known findings of these files were not found any more."""
        names = {_relative(file, self._folder) for file in files}
        return sum(left for (file, _, _), left in self._left.items() if file in names)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read(_MOST_BYTES))  # of more, half a value is read, which is none
        if content["version"] != 1:
            raise ValueError("another version wrote it")
        known = {(str(row["file"]), str(row["code"]), str(row["at"])): int(row["count"]) for row in content["findings"]}
    except OSError as error:
        help = "write it with --write-baseline"
        raise InputError.at(f"cannot be read: {error.strerror or error}", Place(str(path)), help) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        help = "write it anew with --write-baseline"
        raise InputError.at("is no baseline of dsgen lint", Place(str(path)), help) from None
    return Baseline(path.resolve().parent, known)


def is_baseline(path: Path) -> bool:
    """Whether that is what a file holds."""
    try:
        read_baseline(path)
    except InputError:
        return False
    return True


def baseline_text(path: Path, findings: Iterable[Finding], texts: Mapping[str, str]) -> str:
    """The baseline that knows these findings, as it is written to ``path``."""
    folder = path.resolve().parent
    lines = {name: text.splitlines() for name, text in texts.items()}
    counts = Counter(_entry(finding, lines.get(finding.file, []), folder) for finding in findings)
    rows = [{"file": file, "code": code, "at": at, "count": n} for (file, code, at), n in sorted(counts.items())]
    return json.dumps({"version": 1, "findings": rows}, indent=2) + "\n"


def _entry(finding: Finding, lines: list[str], folder: Path) -> _Entry:
    if finding.path:
        at = ".".join(map(str, finding.path))
    else:
        at = lines[finding.range.line - 1].strip() if finding.range.line <= len(lines) else ""
    return _relative(finding.file, folder), finding.code, at


def _relative(file: str, folder: Path) -> str:
    return Path(os.path.relpath(Path(file).resolve(), folder)).as_posix()
