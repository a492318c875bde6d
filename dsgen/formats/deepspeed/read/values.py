"""Values as DeepSpeed's readers take them; ValueError says what is wrong with one."""

import math
from collections.abc import Callable
from typing import Any

_YES = {"true", "yes", "on", "1", "y", "t"}
_NO = {"false", "no", "off", "0", "n", "f"}
_LARGEST = 10**18
"""Elements; beyond it a size means "no bound"."""

_TYPES = {
    "fp32": ("fp32", "float32", "float", "torch.float32"),
    "fp16": ("fp16", "float16", "half", "torch.float16"),
    "bf16": ("bf16", "bfloat16", "torch.bfloat16"),
}
"""deepspeed/runtime/config_utils.py:DtypeEnum, the three that a gradient can have."""

Reader = Callable[[Any], Any]


def integer(value: Any) -> int:
    """A whole number, also as 5e8 or as text."""
    number_ = number(value)
    if number_ != int(number_):
        raise ValueError("is no whole number")
    return int(number_)


def positive(value: Any) -> int:
    """A whole number of at least 1."""
    found = integer(value)
    if found < 1:
        raise ValueError("is less than 1")
    return found


def size(value: Any) -> int:
    """A number of elements, 0 or more; what is beyond all bounds becomes the bound."""
    found = integer(value)
    if found < 0:
        raise ValueError("is less than 0")
    return min(found, _LARGEST)


def positive_size(value: Any) -> int:
    """A number of elements, 1 or more."""
    found = size(value)
    if found < 1:
        raise ValueError("is less than 1")
    return found


def number(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("is no number")
    try:
        found = float(value)
    except (ValueError, OverflowError):
        raise ValueError("is no number") from None
    if not math.isfinite(found):
        raise ValueError("is no finite number")
    # Whole numbers keep all their digits.
    return value if isinstance(value, int) else found


def not_negative(value: Any) -> float:
    """A finite number of at least 0."""
    found = number(value)
    if found < 0:
        raise ValueError("is less than 0")
    return found


def boolean(value: Any) -> bool:
    """true or false, and pydantic's other words for them."""
    word = value.lower() if isinstance(value, str) else str(int(value)) if value in (0, 1) else ""
    if word not in _YES | _NO:
        raise ValueError("is neither true nor false")
    return word in _YES


def group(value: Any) -> int:
    """The size of a sub-group: 0 makes one of every tensor, as 1 does (zero/stage3.py:_create_fp16_sub_groups)."""
    return max(size(value), 1)


def stage(value: Any) -> int:
    """A ZeRO stage."""
    found = integer(value)
    if found not in (0, 1, 2, 3):
        raise ValueError("is no ZeRO stage")
    return found


def device(value: Any) -> str:
    """Where something is offloaded to."""
    if value not in ("none", "cpu", "nvme"):
        raise ValueError("is no device that a plan knows")
    return str(value)


def text(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("is no text")
    return value


def precision(value: Any) -> str:
    """A floating-point type by any of its names."""
    for name, spellings in _TYPES.items():
        if value in spellings:
            return name
    raise ValueError("is no type that a plan knows")


def betas(value: Any) -> list[float]:
    """Two decay rates."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("is no pair of numbers")
    return [number(beta) for beta in value]
