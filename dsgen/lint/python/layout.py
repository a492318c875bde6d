"""A dict literal in code as edits see it: every member with its comma, whatever its value is."""

import ast
import json
import re
from collections.abc import Callable
from typing import Any

from dsgen.documents.document import Document, Member, Node, mapping
from dsgen.documents.edits import TextEdit, insert, remove, rename, replace
from dsgen.lint.mark import Step

_BLANK = re.compile(r"(?:\s|\\(?:\r\n?|\n)|#[^\r\n]*)*")
Span = Callable[[ast.expr], tuple[int, int]]


def layout(text: str, written: ast.Dict, span: Span) -> Document:
    """The dict with the places of all its members; values themselves are left out."""
    return Document(text, _node(text, written, span))


def _node(text: str, written: ast.Dict, span: Span) -> Node:
    start, end = span(written)
    members = []
    for key, value in zip(written.keys, written.values, strict=True):
        value_start, value_end = span(value)
        outer_end, comma = _after(text, value_end)
        if key is None:  # **base
            members.append(
                Member("", text.rindex("**", 0, value_start), value_start, Node(None, value_start, outer_end), comma)
            )
            continue
        key_start, key_end = span(key)
        colon = text.index(":", _past_blanks(text, key_end))
        outer_start = _past_blanks(text, colon + 1)
        inner = _node(text, value, span) if isinstance(value, ast.Dict) and outer_start == value_start else None
        node = inner or Node(None, outer_start, outer_end)
        name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        members.append(Member(name, key_start, key_end, node, comma))
    return mapping(members, start, end)


def _past_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int) -> tuple[int, int | None]:
    """Where a value with its parentheses ends, and the comma after it."""
    end = at
    while True:
        following = _past_blanks(text, at)
        char = text[following : following + 1]
        if char != ")":
            return end, following if char == "," else None
        end = at = following + 1


def edits_of(document: Document, step: Step) -> list[TextEdit]:
    """The edits of one step of a change."""
    *parent, key = step.path
    quote = _quote(document)

    def write(value: Any) -> str:
        return python_text(value, quote)

    if step.action == "remove":
        return remove(document, tuple(parent), step.value or [str(key)])
    if step.action == "replace":
        return replace(document, step.path, step.value, write)
    if step.action == "rename":
        return rename(document, step.path, step.value, write)
    return insert(document, tuple(parent), str(key), step.value, write)


def _quote(document: Document) -> str:
    members = (document.root.members or ()) if document.root else ()
    return "'" if members and document.text.startswith("'", members[0].key_start) else '"'


def python_text(value: Any, quote: str = '"') -> str:
    """A value as Python reads it back."""
    if isinstance(value, dict):
        pairs = (f"{python_text(key, quote)}: {python_text(inner, quote)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(python_text(item, quote) for item in value) + "]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, str) and quote == '"' and value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
