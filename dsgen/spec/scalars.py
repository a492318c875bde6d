"""The user's text as a value of the type that the schema asks for (x-dsgen.type)."""

from collections.abc import Callable

from dsgen.units import parse_bytes, parse_count, parse_integer, parse_number

_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_boolean(text: str) -> bool:
    """``true`` and ``false``, and YAML's other words for them."""
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


PARSERS: dict[str, Callable[[str], object]] = {
    "boolean": parse_boolean,
    "bytes": parse_bytes,
    "count": parse_count,
    "integer": parse_integer,
    "number": parse_number,
    "text": str,
    # Kept letter for letter: 2.10 is not 2.1.
    "version": str.strip,
}

DESCRIPTIONS = {
    "boolean": "true or false",
    "bytes": "bytes with a unit, such as 80GiB",
    "count": "a count, such as 7B",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "version": "a version, such as 2.10",
}
