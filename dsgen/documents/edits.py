"""Edits to a mapping that touch nothing else: comments, order, indentation and line ends stay.

An edit is (start, end, new text) in offsets of the original text; edits of one change never overlap.
"""

import json
import re
from collections.abc import Callable, Collection
from typing import Any

from dsgen.documents.document import Document, Member, Node, Path

TextEdit = tuple[int, int, str]

_REST_OF_LINE = re.compile(r"[ \t]*(?:(?://|#)[^\r\n]*)?(\r\n?|\n|\Z)")
_LINE_BREAK = re.compile(r"\r\n?|\n")
_INDENT = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"[ \t]*")


def apply(text: str, edits: Collection[TextEdit]) -> str:
    """The text after all edits."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def replace(document: Document, path: Path, value: Any, write: Callable[[Any], str] = json.dumps) -> list[TextEdit]:
    """Writes another value where one stands."""
    node = document.node(path)
    return [(node.start, node.end, write(value))] if node else []


def rename(document: Document, path: Path, key: str, write: Callable[[Any], str] = json.dumps) -> list[TextEdit]:
    """Writes another key before a value."""
    member = document.member(path)
    return [(member.key_start, member.key_end, write(key))] if member else []


def remove(document: Document, path: Path, keys: Collection[str]) -> list[TextEdit]:
    """Takes members out of the mapping at a path, each with its line where it has one of its own."""
    members = (document.node(path) or Node(None, 0, 0)).members or ()
    edits = []
    kept: Member | None = None
    for index, member in enumerate(members):
        if member.key not in keys:
            kept = member
            continue
        start, end = _stretch(document.text, member)
        is_tail = all(later.key in keys for later in members[index:])
        if is_tail and kept is not None and kept.comma is not None and members[-1].comma is None:
            # What was last now follows no comma; on one line the gap closes up as well.
            if document.text[kept.comma + 1 : start].strip(" \t") == "":
                start = kept.comma
                end = member.node.end if member.comma is None else end
            else:
                edits.append((kept.comma, kept.comma + 1, ""))
            kept = None
        edits.append((start, end, ""))
    return edits


def _stretch(text: str, member: Member) -> tuple[int, int]:
    start = member.key_start
    end = member.node.end if member.comma is None else member.comma + 1
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    rest = _REST_OF_LINE.match(text, end)
    if rest and not text[line_start:start].strip(" \t"):
        return line_start, rest.end()
    blanks = _BLANKS.match(text, end)
    return start, blanks.end() if blanks else end


def insert(
    document: Document, path: Path, key: str, value: Any, write: Callable[[Any], str] = json.dumps
) -> list[TextEdit]:
    """Adds a member at the end of the mapping at a path, laid out like the member before it."""
    node = document.node(path)
    if node is None or node.members is None:
        return []
    text = document.text
    written = f"{write(key)}: {write(value)}"
    if not node.members:
        return [(node.start + 1, node.start + 1, written)] if text.startswith("{", node.start) else []
    last = node.members[-1]
    line_start = max(text.rfind("\n", 0, last.key_start), text.rfind("\r", 0, last.key_start)) + 1
    indent = text[line_start : last.key_start]
    if indent.strip(" \t"):
        return [_inline(text, last, written)]
    end = last.node.end if last.comma is None else last.comma + 1
    rest = _REST_OF_LINE.match(text, end)
    at = rest.end() - len(rest.group(1)) if rest else end
    # Text without quotes runs to the end of its line and takes no comma; there a new line is enough.
    comma = [] if last.comma is not None or _is_bare(text, last.node) else [(last.node.end, last.node.end, ",")]
    trailing = "," if last.comma is not None else ""
    new_line = (at, at, f"{_line_break(text)}{indent}{written}{trailing}")
    return [(at, at, "," + new_line[2])] if comma and at == last.node.end else [*comma, new_line]


def _inline(text: str, last: Member, written: str) -> TextEdit:
    if last.comma is not None:
        return (last.comma + 1, last.comma + 1, f" {written},")
    joint = _line_break(text) if _is_bare(text, last.node) else ", "
    return (last.node.end, last.node.end, joint + written)


def _line_break(text: str) -> str:
    """As the text ends its lines."""
    found = _LINE_BREAK.search(text)
    return found.group() if found else "\n"


def _is_bare(text: str, node: Node) -> bool:
    return isinstance(node.value, str) and text[node.start : node.start + 1] not in ("'", '"')
