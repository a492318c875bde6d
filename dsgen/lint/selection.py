"""Which findings count, and how much: codes that are chosen or left out, by file and by code."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath

from dsgen.errors import InputError, Place
from dsgen.lint.finding import Finding, Severity
from dsgen.lint.rule import RULES_FOLDER

_CODE = r"@rule\(\s*\"(\w+)\""


@dataclass(frozen=True, slots=True)
class Selection:
    """Codes are whole (``DS310``) or a beginning (``DS3``, ``TC``); of two that fit, the longer one decides."""

    select: tuple[str, ...] = ()
    """Empty: all."""
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of paths, as a shell knows them, and the codes left out there."""
    severity: Mapping[str, Severity] = field(default_factory=dict)
    """By code, or beginning of a code."""
    folder: Path | None = None
    """What the patterns are relative to."""

    def of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that count, each with the severity that it is to have."""
        return [self._weighed(finding) for finding in findings if self._counts(finding)]

    def _counts(self, finding: Finding) -> bool:
        wanted = _longest(finding.code, self.select) if self.select else 0
        if wanted is None or self._is_left_out_of(finding):
            return False
        unwanted = _longest(finding.code, self.ignore)
        return unwanted is None or wanted > unwanted

    def _is_left_out_of(self, finding: Finding) -> bool:
        """Whether the file's own list leaves the code out."""
        if not self.per_file_ignores:
            return False
        path = _relative(finding.file, self.folder)
        return any(
            _longest(finding.code, codes) is not None
            for pattern, codes in self.per_file_ignores
            if fnmatchcase(path, pattern) or fnmatchcase(PurePath(path).name, pattern)
        )

    def _weighed(self, finding: Finding) -> Finding:
        fitting = [code for code in self.severity if finding.code.startswith(code)]
        return replace(finding, severity=self.severity[max(fitting, key=len)]) if fitting else finding


def _longest(code: str, beginnings: Iterable[str]) -> int | None:
    """Length of the longest beginning that fits; None where none does."""
    return max((len(beginning) for beginning in beginnings if code.startswith(beginning)), default=None)


def _relative(file: str, folder: Path | None) -> str:
    path = Path(file).resolve()
    return path.relative_to(folder).as_posix() if folder and path.is_relative_to(folder) else path.as_posix()


def check_code(code: str, place: Place | None) -> str:
    """The code, or the beginning of one.

    Raises:
        InputError: no rule has such a code.
    """
    known = codes()
    if not code or not any(name.startswith(code) for name in known):
        from dsgen.lint.names import closest

        near = closest(code, known)
        areas = sorted({name.rstrip("0123456789") for name in known})
        hint = f"did you mean {near[0]}?" if near else f"codes start with {' or '.join(areas)}; dsgen show rules"
        raise InputError.at(f"no rule has the code {code!r}", place, hint)
    return code


@cache
def codes() -> tuple[str, ...]:
    """The codes of all rules; read from the files, since importing all of them takes its time."""
    texts = (file.read_text("utf-8") for file in sorted(RULES_FOLDER.glob("*/[!_]*.py")))
    return tuple(sorted({code for text in texts for code in re.findall(_CODE, text)}))
