"""What the walk over the schema finds: one slip per mistake, by kind."""

from dataclasses import dataclass
from typing import Literal

from dsgen.lint.mark import Mark

Kind = Literal[
    "unknown-key",
    "wrong-type",
    "whole-number-with-a-point",
    "value-not-allowed",
    "removed-key",
    "key-removed-later",
    "renamed-key",
    "old-key",
    "key-of-a-later-version",
    "dead-key",
    "key-given-twice",
    "missing-parameter",
    "auto-that-nobody-fills",
]


@dataclass(frozen=True, slots=True)
class Slip:
    """A mark, and the kind of mistake (each kind is one rule)."""

    kind: Kind
    mark: Mark
    meant: tuple[str, ...] | None = None
    """Of an unknown key: the path of the one that was beyond doubt meant."""
    lacks: tuple[tuple[str, ...], ...] = ()
    """The paths of the keys that are missing."""
