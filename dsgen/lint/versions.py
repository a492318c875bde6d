"""Versions of libraries in lint: from a flag or a schema to something that compares."""

from dsgen.errors import InputError
from dsgen.facts.versions import version_key

Version = tuple[int, ...]

ALWAYS, NEVER = "0", "9999"
"""Bounds that every version, and none, has reached."""


def parse(text: str) -> Version:
    """The version that a flag or a table names.

    Raises:
        InputError: no release number at the start.
    """
    try:
        return version_key(text)
    except ValueError:
        raise InputError.at(f"{text!r} is not a version", help="write it as 0.19.8") from None


def at_least(version: Version, bound: str | None) -> bool:
    """Whether a version is the bound or later; no bound lies below every version."""
    return bound is None or version >= version_key(bound)


def before(version: Version, bound: str | None) -> bool:
    """Whether a version is earlier than the bound; no bound lies above every version."""
    return bound is None or version < version_key(bound)


def show(version: Version) -> str:
    """As people write it: at least three numbers."""
    return ".".join(map(str, version + (0,) * (3 - len(version))))
