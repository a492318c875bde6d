"""The text of a spec: read within bounds, decoded, free of what no person writes."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from dsgen.errors import InputError, Place
from dsgen.units import format_bytes

LARGEST = 2**20
"""Bytes. A spec is a few kilobytes; the bound keeps a mistaken argument (a checkpoint, a data set) from being read."""

STDIN = "-"

# YAML's c-printable, less NEL and the line separators (no person means them as line breaks), less the byte order mark.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A spec's text, with what its messages and relative paths need."""

    text: str
    file: str
    """As the user named it."""
    folder: Path
    """What relative paths are relative to."""


def read_source(path: str) -> Source:
    """Reads the file at ``path``; ``-`` is standard input, whose paths are relative to the working directory."""
    if path == STDIN:
        file = "<stdin>"
        return Source(decode(_standard_input(file), file), file, working_folder())
    try:
        with open(path, "rb") as stream:
            # A device or a pipe has no size worth asking for; what is read of it is bounded all the same.
            data = stream.read(LARGEST + 1)
            size = Path(path).stat().st_size if len(data) > LARGEST else len(data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError.at(_unreadable(path, error), Place(path)) from None
    return Source(decode(data, path, size), path, Path(path).absolute().parent)


def working_folder() -> Path:
    """Where relative paths start; one that has been removed holds nothing that could be found."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


def _standard_input(file: str) -> bytes:
    if sys.stdin is None:  # closed by whoever started us
        raise InputError.at("there is no standard input", Place(file))
    try:
        return sys.stdin.buffer.read(LARGEST + 1)
    except OSError as error:
        raise InputError.at(_unreadable(file, error), Place(file)) from None


def _unreadable(path: str, error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        inside = Path(path) / "spec.yaml"
        return (
            f"this is a folder, not a spec; did you mean {inside}?"
            if inside.is_file()
            else "this is a folder, not a spec"
        )
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {error}"


def decode(data: bytes, file: str, size: int = 0) -> str:
    """UTF-8 (a byte order mark is fine) without control characters; anything else is refused with its place."""
    if len(data) > LARGEST:
        raise InputError.at(
            f"too large for a spec: {format_bytes(max(size, len(data)))}; the limit is {format_bytes(LARGEST)}",
            Place(file),
        )
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            raise InputError.at(f"this is {encoding}, not UTF-8", Place(file), "save the file as UTF-8")
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode().removeprefix("\ufeff")
        raise InputError.at(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            Place(file, *_line_and_column(good)),
            "save the file as UTF-8",
        ) from None
    if found := _FORBIDDEN.search(text):
        raise InputError.at(
            f"character U+{ord(found[0]):04X} has no place in a spec",
            Place(file, *_line_and_column(text[: found.start()])),
            "save the file as UTF-8 text" if found[0] == "\0" else "remove it",
        )
    return text


def _line_and_column(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows ``before``."""
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1


def holds_forbidden(text: str) -> bool:
    """Whether a text, its escapes resolved, holds what has no place in a spec."""
    return bool(_FORBIDDEN.search(text))
