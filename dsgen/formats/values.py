"""What a writer hands back, whatever the format."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NotCarried:
    """Something of the plan that the format cannot say, and how to pass it instead."""

    key: str
    value: object
    pass_as: str
    """What to write elsewhere, for example ``--gradient_checkpointing true``."""
    why: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one written value is what it is (``build --explain``)."""

    key: str
    """Dotted path in the file."""
    value: object
    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """Files by relative path, each text ending in a newline; the first one is the main file."""

    files: Mapping[str, str]
    not_carried: tuple[NotCarried, ...] = ()
    reasons: tuple[Reason, ...] = ()
    executable: frozenset[str] = field(default_factory=frozenset)
    """Files that get the execute bit (launchers)."""
