"""Quantities as people write them ("80GiB", "7B", "2e-5"), exactly, and back to text.

Every parser takes the text that the user wrote and raises ValueError with one sentence that says what to write.
"""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

GIB = 2**30
GB = 10**9

_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
# "80gb" and "80GIB" leave no doubt; "80Gb" might be gigabits, so mixed spellings other than the proper one are refused.
_BYTES = {
    spelling: size
    for name, size in ({"B": 1} | _DECIMAL | _BINARY).items()
    for spelling in (name, name.lower(), name.upper())
}
_COUNT = {"K": 10**3, "k": 10**3, "M": 10**6, "B": 10**9, "b": 10**9, "G": 10**9, "T": 10**12}

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+|[+-]?\d+(?:_\d+)+(?:\.\d+)?", re.ASCII)
_QUANTITY = re.compile(r"(?P<number>[^a-zA-Z\s]*(?:[eE][+-]?\d+)?)\s*(?P<unit>[a-zA-Z]*)", re.ASCII)

# Longer texts are no number that a person wrote, and int() refuses (or crawls over) thousands of digits.
_LONGEST = 40
_LARGEST = 2**63 - 1


def _exact(text: str) -> Fraction:
    """The number that ``text`` spells; digits may be grouped as 1_000 or 1,000."""
    digits = re.sub("[_,]", "", text) if _GROUPED.fullmatch(text) else text
    if len(text) > _LONGEST or not _NUMBER.fullmatch(digits):
        raise ValueError("not a number")
    try:
        value = Decimal(digits)
    except InvalidOperation:  # an exponent beyond what decimal holds
        raise ValueError("not a number of a size that occurs") from None
    if value and not -400 < value.adjusted() < 400:
        raise ValueError("not a number of a size that occurs")
    return Fraction(value)


def parse_number(text: str) -> float:
    """A real number: ``2e-5``, ``0.1``, ``1_000``."""
    value = _exact(text.strip())
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("too large") from None
    if value and not number:
        raise ValueError("too small")
    return number


def _whole(value: Fraction) -> int:
    """A whole number, or ValueError."""
    if value.denominator != 1:
        raise ValueError("not a whole number")
    if abs(value) > _LARGEST:
        raise ValueError("too large")
    return int(value)


def parse_integer(text: str) -> int:
    """A whole number: ``8``, ``1_000``, ``1e4``."""
    return _whole(_exact(text.strip()))


def _scaled(text: str, units: dict[str, int], unknown: str) -> Fraction:
    match = _QUANTITY.fullmatch(text.strip()[: _LONGEST + 1])
    if not match:
        raise ValueError("not a number with a unit")
    unit = match["unit"]
    if unit and unit not in units:
        raise ValueError(unknown.format(unit=unit))
    return _exact(match["number"]) * (units[unit] if unit else 1)


def parse_bytes(text: str) -> int:
    """Bytes: ``80GiB`` (2^30), ``80GB`` (10^9), ``1.5 TiB``, or a plain number of bytes.

    A part of a byte, as in 79.15GiB, is dropped.
    """
    value = _scaled(text, _BYTES, "unknown unit {unit!r}; GiB is 2^30 bytes, GB 10^9")
    if value < 0:
        raise ValueError("less than nothing")
    has_unit = text.strip()[-1:] in "bB"
    return _whole(Fraction(floor(value)) if has_unit else value)


def parse_count(text: str) -> int:
    """How many: ``7B``, ``350M``, ``1.5T``, ``70e9``, ``8,030,261,248``; K, M, B, T are 10^3, 10^6, 10^9, 10^12."""
    return _whole(_scaled(text, _COUNT, "unknown unit {unit!r}; K, M, B, T are 10^3, 10^6, 10^9, 10^12"))


def _three_digits(value: float) -> str:
    """``value`` with three significant digits, never less than its whole part."""
    for decimals in (3, 2, 1):
        if round(abs(value), decimals) < 10 ** (3 - decimals):
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def format_bytes(count: float) -> str:
    """Bytes as GiB with three significant digits; below 0.1 GiB as MiB, and so on down."""
    for unit in ("GiB", "MiB", "KiB"):
        if abs(count) >= _BINARY[unit] / 10:
            return f"{_three_digits(count / _BINARY[unit])} {unit}"
    return f"{count:.0f} B"


def format_count(count: int) -> str:
    """A count with three significant digits: ``8.03B``, ``350M``; below a thousand as it is."""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        # 999,600 is 1.00M, not 1000K.
        if abs(count) >= size * 0.9995:
            return f"{_three_digits(count / size)}{unit}"
    return str(count)
