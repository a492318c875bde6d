"""Names, types and shapes of the tensors in a safetensors file: its header alone, without torch.

Layout (safetensors README, "Format"): 8 bytes N, little-endian; N bytes of JSON, at most 100 MB, that maps each name to
``{"dtype", "shape", "data_offsets": [begin, end]}``; then the data, into which the offsets point.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

from dsgen.errors import InputError, Place
from dsgen.shapes.config_file import regular

LONGEST = 100_000_000
"""Bytes of a header, as safetensors itself bounds it (tensor.rs: MAX_HEADER_SIZE)."""
MOST = 1_000_000
"""Tensors of one file; the largest published checkpoints have some hundred thousand in all."""
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
}


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor as it lies in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        return prod(self.shape)


def header_of(path: Path) -> tuple[list[Stored], int]:
    """The tensors of one file and the bytes of its header; InputError where it is none, or cut off."""
    try:
        with open(path, "rb", opener=regular) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > LONGEST or 8 + length > size:
                raise _broken(path, f"its header would be {length} bytes long in a file of {size}")
            raw = file.read(length)
    except OSError as error:
        raise InputError.at(f"cannot read {path}: {error.strerror or error}") from None
    return list(_tensors(path, raw, size - 8 - length)), length


def _tensors(path: Path, raw: bytes, data: int) -> Iterator[Stored]:
    header = _object(path, raw)
    if len(header) > MOST:
        raise _broken(path, f"it names {len(header)} tensors")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        stored = _stored(name, entry)
        if stored is None:
            raise _broken(path, f"what it says of {_shown(name)} is no type, shape and place")
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= data:
            raise _broken(path, f"{_shown(name)} lies outside the file: it is cut off, or not downloaded wholly")
        if (end - begin) * 8 != stored.numel * _BITS.get(stored.dtype, 0) and stored.dtype in _BITS:
            raise _broken(path, f"{_shown(name)} has {end - begin} bytes, which is not its shape in {stored.dtype}")
        yield stored


def _object(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number of thousands of digits, a deep tree
        raise _broken(path, "its header is not JSON") from None
    if not isinstance(header, dict):
        raise _broken(path, "its header is no JSON object")
    return header


def _stored(name: str, entry: Any) -> Stored | None:
    if not isinstance(entry, dict):
        return None
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or len(dtype) > 32 or not _whole_numbers(shape) or not _whole_numbers(offsets):
        return None
    return Stored(name, dtype, tuple(shape)) if len(offsets) == 2 and len(shape) <= 16 else None


def _whole_numbers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _shown(name: str) -> str:
    text = name if len(name) <= 80 else name[:77] + "..."
    return repr(text)


def _broken(path: Path, why: str) -> InputError:
    error = InputError.at(f"not a safetensors file: {why}", Place(str(path)), "download it anew, or take it away")
    assert isinstance(error, InputError)
    return error
