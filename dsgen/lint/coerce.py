"""What DeepSpeed makes of a value of another type than the key wants.

Sections read by pydantic convert: version 2 of pydantic (DeepSpeed 0.15 on) takes "2", 2.0 and true for an integer but
no fraction; version 1 (before) cut fractions off.
"""

import math
import re
from typing import Any

_WHOLE = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*")
_YES = {"1", "on", "t", "true", "y", "yes"}
NO = {"0", "off", "f", "false", "n", "no"}

REFUSED = object()


def json_type(value: Any) -> str:
    """The JSON Schema type of a value; a float without fraction is an integer, as JSON Schema has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def is_of(value: Any, types: tuple[str, ...]) -> bool:
    """Whether a value has one of these types as it stands."""
    kind = json_type(value)
    return not types or kind in types or (kind == "integer" and "number" in types)


def by_pydantic(value: Any, types: tuple[str, ...], modern: bool) -> Any:
    """The value that pydantic makes of one whose type does not fit; REFUSED if it raises.

    ``modern``: pydantic 2 semantics, DeepSpeed 0.15 and later.
    """
    for kind in types:
        if kind in _CONVERTERS:
            made = _CONVERTERS[kind](value, modern)
            if made is not REFUSED:
                return made
    return REFUSED


def _integer(value: Any, modern: bool) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        digits = value.strip().split(".")[0]
        return int(digits) if len(digits) < 4300 and (modern or "." not in value) else REFUSED
    if isinstance(value, float) and not modern and math.isfinite(value):
        return int(value)
    return REFUSED


def _number(value: Any, _modern: bool) -> Any:
    if isinstance(value, bool):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else REFUSED
    except ValueError:
        return REFUSED


def _boolean(value: Any, _modern: bool) -> Any:
    word = value.lower() if isinstance(value, str) else str(int(value)) if value in (0, 1) else ""
    return True if word in _YES else False if word in NO else REFUSED


def _string(value: Any, modern: bool) -> Any:
    return str(value) if not modern and isinstance(value, int | float) else REFUSED


_CONVERTERS = {"integer": _integer, "number": _number, "boolean": _boolean, "string": _string}
