"""What a rule yields: which value is wrong and why. The runner turns marks into findings with places and edits."""

from dataclasses import dataclass, field
from typing import Any, Literal

from dsgen.lint.finding import Severity

On = Literal["key", "value"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a change, in terms of values; the file turns it into edits."""

    action: Literal["remove", "replace", "rename", "insert"]
    path: Any
    """The member that is removed, replaced, renamed or added; where a text replaces another: the node, or its span."""
    value: Any = None
    """The new value, or the new key of a rename."""


@dataclass(frozen=True, slots=True)
class Change:
    """A cure: what it does in words, and its steps."""

    description: str
    steps: tuple[Step, ...]
    safe: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One mistake, as a rule sees it."""

    severity: Severity
    where: Any
    """Path of keys in a config; a node of the syntax tree in Python."""
    message: str
    help: str | None = None
    on: On = "value"
    """Whether the key or the value is underlined."""
    related: tuple[tuple[Any, str], ...] = field(default=())
    """Other places, each with what is to be said there; an ``Elsewhere`` lies in another file."""
    fix: Change | None = None


def error(where: Any, message: str, **more: Any) -> Mark:
    """It crashes, or trains wrongly."""
    return Mark(severity="error", where=where, message=message, **more)


def warning(where: Any, message: str, **more: Any) -> Mark:
    """It is ignored, or does harm."""
    return Mark(severity="warning", where=where, message=message, **more)


def info(where: Any, message: str, **more: Any) -> Mark:
    """Advice."""
    return Mark(severity="info", where=where, message=message, **more)


def remove(description: str, *paths: tuple[str | int, ...], safe: bool = True) -> Change:
    """Takes keys out."""
    return Change(description, tuple(Step("remove", path) for path in paths), safe)


def replace(description: str, path: tuple[str | int, ...], value: Any, safe: bool = True) -> Change:
    """Writes another value."""
    return Change(description, (Step("replace", path, value),), safe)


def rename(description: str, path: tuple[str | int, ...], key: str, safe: bool = True) -> Change:
    """Writes another key."""
    return Change(description, (Step("rename", path, key),), safe)


def insert(description: str, path: tuple[str | int, ...], value: Any, safe: bool = True) -> Change:
    """Adds a key."""
    return Change(description, (Step("insert", path, value),), safe)
