"""From paths on the command line to files to lint: a named file always, in a folder what looks like ours."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsgen.documents.source import standard_input
from dsgen.errors import InputError, Place
from dsgen.lint.kinds import KINDS, Kind, kind_of, kind_of_named

STDIN = "-"
# Nobody's own configs lie there.
_PASSED_OVER = {"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Source:
    """One file to lint."""

    name: str
    data: bytes
    kind: Kind
    is_stdin: bool = False


def sources(paths: list[str], stdin_name: str | None = None) -> Iterator[Source]:
    """Every file that the paths name or hold, each once; ``-`` is what stands on standard input, named so.

    Raises:
        InputError: a path that does not exist, cannot be read, or is of a kind without rules.
    """
    seen: set[str] = set()
    for path in paths:
        if path == STDIN:
            found = _on_stdin(stdin_name or "stdin")
        else:
            found = _in_folder(path) if Path(path).is_dir() else _named(path)
        for source in found:
            if os.path.realpath(source.name) not in seen:
                seen.add(os.path.realpath(source.name))
                yield source


def _on_stdin(name: str) -> Iterator[Source]:
    kind = _kind(name)
    yield Source(name, standard_input(kind.most_bytes + 1), kind, is_stdin=True)


def _kind(name: str) -> Kind:
    kind = kind_of_named(name)
    if kind is None:
        suffixes = ", ".join(suffix for known in KINDS for suffix in known.suffixes)
        raise InputError.at("dsgen lint has no rules for this kind of file", Place(name), help=f"it reads {suffixes}")
    return kind


def _named(path: str) -> Iterator[Source]:
    kind = _kind(path)
    try:
        yield Source(path, _read(path, kind), kind)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError.at(f"cannot be read: {reason}", Place(path)) from None


def _read(path: str | Path, kind: Kind) -> bytes:
    # One byte beyond the bound tells a file that is too large; its rest is never read.
    with open(path, "rb") as file:
        return file.read(kind.most_bytes + 1)


def _in_folder(folder: str) -> Iterator[Source]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PASSED_OVER)
        for name in sorted(names):
            kind = kind_of(name)
            source = kind and _ours(Path(where) / name, kind)
            if source:
                yield source


def _ours(path: Path, kind: Kind) -> Source | None:
    try:
        if not path.is_file() or path.stat().st_size > kind.most_bytes:
            return None
        data = _read(path, kind)
    except OSError:
        return None
    return Source(str(path), data, kind) if kind.in_folders(data.decode(errors="replace")) else None
