"""Reads a DeepSpeed config file with the places of what is wrong in it."""

from pathlib import Path
from typing import Any

from dsgen.documents.document import Document, DocumentError, Lines, Node
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json
from dsgen.errors import InputError, Place, Problem

# DeepSpeed configs are a few hundred lines; what is far larger is another kind of file.
_MOST_BYTES = 5_000_000


def read_config(path: Path) -> tuple[dict[str, Any], bool]:
    """The config, and whether it is strict JSON (which transformers and accelerate insist on).

    Values are those that DeepSpeed sees: it reads with hjson, also what is strict JSON.
    """
    name = str(path)
    text = read_text(path, name)
    lines = Lines(text)
    strict_problem: DocumentError | None = None
    try:
        strict: Node | None = read_json(text)
    except DocumentError as problem:
        strict, strict_problem = None, problem
    try:
        root = read_hjson(text)
    except DocumentError as problem:
        # Of two complaints about a broken file, the one of the stricter reader is the simpler.
        raise _error(strict_problem or problem, name, lines) from None
    if not isinstance(root.value, dict):
        raise InputError.at("a DeepSpeed config is an object, {...}", Place(name, *lines.place(root.start)))
    _refuse_duplicates(Document(text, root), name, lines)
    return root.value, strict is not None


def read_text(path: Path, name: str) -> str:
    """The text of a file; what is no text, or far too much of it, is an InputError."""
    try:
        with path.open("rb") as file:
            # Asked of what was read, not of the size: a device has none, and no end.
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InputError.at(f"more than {_MOST_BYTES} bytes are too many for such a file", Place(name))
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError.at(f"not UTF-8 text (byte {error.start})", Place(name)) from None
    except OSError as error:
        raise InputError.at(f"can't be read: {error.strerror}", Place(name)) from None


def _error(problem: DocumentError, name: str, lines: Lines) -> InputError:
    return InputError(Problem(problem.message, Place(name, *lines.place(problem.start)), problem.help))


def _refuse_duplicates(document: Document, name: str, lines: Lines) -> None:
    problems = [
        Problem(
            f"{'.'.join(str(part) for part in duplicate.path)} stands here again, first in line "
            f"{lines.place(duplicate.first.key_start)[0]}; DeepSpeed refuses a file with duplicate keys",
            Place(name, *lines.place(duplicate.last.key_start)),
            "remove one of the two",
        )
        for duplicate in document.duplicates()
    ]
    if problems:
        raise InputError(*problems)
