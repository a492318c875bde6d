"""Switches and numbers as YAML, Python and command lines write them."""

from typing import Any

from dsgen.units import parse_integer, parse_number

_YES = (True, "true", "yes", "1", 1)


def is_on(value: Any) -> bool:
    """Whether a switch is on, as YAML, Python or a command line writes it."""
    return any(value is yes or value == yes for yes in _YES) or (isinstance(value, str) and value.lower() in _YES)


def is_off(value: Any) -> bool:
    """Whether a switch is off, and written."""
    return value is False or (isinstance(value, str) and value.lower() in ("false", "no", "0"))


def count(value: Any) -> int:
    """A positive whole number; ValueError says what is wrong."""
    found = parse_integer(str(value)) if not isinstance(value, bool | list | dict) else 0
    if found < 1:
        raise ValueError("is no positive whole number")
    return found


def number(value: Any) -> float:
    """A number; ValueError says what is wrong."""
    if isinstance(value, bool | list | dict):
        raise ValueError("is no number")
    return parse_number(str(value))
