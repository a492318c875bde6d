"""A finding: one mistake at one place, complete enough to be shown, serialised and fixed."""

from dataclasses import dataclass
from typing import Literal

from dsgen.documents.document import Path, Range

Severity = Literal["error", "warning", "info"]
"""error: it crashes or trains wrongly; warning: ignored or harmful; info: advice."""

RANK: dict[str, int] = {"info": 0, "warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces a stretch of the file by a text."""

    range: Range
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that cure one finding. Safe: the one right answer, which keeps what the file does or plainly meant."""

    description: str
    edits: tuple[Edit, ...]
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A place in another file."""

    file: str
    range: Range


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to the mistake."""

    range: Range
    message: str
    file: str | None = None
    """None: the file of the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One mistake at one place. Lines and columns count from 1, the end is exclusive."""

    file: str
    range: Range
    code: str
    rule: str
    severity: Severity
    message: str
    help: str | None = None
    path: Path | None = None
    """Keys to the value; None in Python files."""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
