"""Edits to YAML that touch nothing else: in block style whole lines, in braces what ``edits`` does for JSON.

No edit is made where one text stands for several values (anchors, merged mappings): it would change the others, too.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from dsgen.documents import edits
from dsgen.documents.document import Document, Member, Node, Path, mapping
from dsgen.documents.edits import TextEdit

# On purpose wide: what only looks like an alias costs an edit, one that is overlooked a config.
_SHARED = re.compile(r"(?m)(?:^|[\s\[,{:-])(?:\*\w|<<[ \t]*:)")
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_NO_TEXT = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
_COLON = re.compile(r"[ \t]*:")
_REST = re.compile(r"[ \t]*(?:#[^\r\n]*)?(\r\n?|\n|\Z)")
_AFTER = re.compile(r"(?:\s|#[^\r\n]*)*(,?)")
_LINE_BREAK = re.compile(r"\r\n?|\n")


def yaml_text(value: Any) -> str:
    """A value as YAML 1.1 reads it back."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{yaml_text(key)}: {yaml_text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_text, value)) + "]"
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXT
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        special = {float("inf"): ".inf", float("-inf"): "-.inf"}.get(value, ".nan" if value != value else None)
        digits, mark, exponent = repr(value).partition("e")
        # Without a point 1e-05 is text.
        return special or (f"{digits}.0e{exponent}" if mark and "." not in digits else repr(value))
    return json.dumps(value)


def replace(document: Document, path: Path, value: Any) -> list[TextEdit] | None:
    """Writes another value where one stands; None where that cannot be done."""
    text, node, member = document.text, document.node(path), document.member(path)
    if node is None or node.end <= node.start or not _is_own(document, path) or text[node.start] in "&!":
        return None
    is_block = (node.members is not None or node.items is not None) and not text.startswith(("{", "["), node.start)
    if not is_block and text[node.start] not in "|>":
        return [(node.start, node.end, yaml_text(value))]
    colon = _COLON.match(text, member.key_end) if member else None
    return [(colon.end(), _end(text, member), f" {yaml_text(value)}")] if colon and member else None


def rename(document: Document, path: Path, key: str) -> list[TextEdit] | None:
    """Writes another key before a value; None where that cannot be done."""
    member = document.member(path)
    if member is None or not _is_own(document, path):
        return None
    return [(member.key_start, member.key_end, yaml_text(key))]


def remove(document: Document, path: Path, keys: Collection[str]) -> list[TextEdit] | None:
    """Takes members out of the mapping at a path; None where that cannot be done."""
    node = document.node(path) if path else document.root
    if node is None or node.members is None or not all(_is_own(document, (*path, key)) for key in keys):
        return None
    if _is_flow(document.text, node):
        return edits.remove(Document(document.text, _with_commas(document.text, node)), (), keys)
    going = [member for member in node.members if member.key in keys]
    if len(going) == len(node.members):
        return _emptied(document, path, node)
    made = []
    for member in going:
        start = _line_start(document.text, member.key_start)
        rest = _REST.match(document.text, _end(document.text, member))
        if document.text[start : member.key_start].strip(" ") or rest is None:
            return None
        made.append((start, rest.end(), ""))
    return made


def insert(document: Document, path: Path, key: str, value: Any) -> list[TextEdit] | None:
    """Adds a member at the end of the mapping at a path; None where that cannot be done."""
    text = document.text
    node = document.node(path) if path else document.root
    if node is None or node.members is None or not _is_own(document, path):
        return None
    if _is_flow(text, node):
        flow = Document(text, _with_commas(text, node))
        return edits.insert(flow, (), key, value, yaml_text)
    last = max(node.members, key=lambda member: member.key_start)
    start = _line_start(text, last.key_start)
    lead = text[start : last.key_start]
    rest = _REST.match(text, _end(text, last))
    if lead.strip(" -") or rest is None or not _is_own(document, (*path, last.key)):
        return None
    line_break = found.group() if (found := _LINE_BREAK.search(text)) else "\n"
    lines = _block(key, value, " " * len(lead))
    at = rest.start(1)
    return [(at, at, "".join(line_break + line for line in lines))]


def _block(key: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, dict) and value:
        inner = [line for name, one in value.items() for line in _block(name, one, indent + "  ")]
        return [f"{indent}{yaml_text(key)}:", *inner]
    return [f"{indent}{yaml_text(key)}: {yaml_text(value)}"]


def _emptied(document: Document, path: Path, node: Node) -> list[TextEdit] | None:
    """Nothing but the key, or nothing at all, would be null."""
    text = document.text
    end = max(_end(text, member) for member in node.members or ())
    if not path:
        return [(min(member.key_start for member in node.members or ()), end, "{}")]
    holder = document.member(path)
    colon = _COLON.match(text, holder.key_end) if holder else None
    return [(colon.end(), end, " {}")] if colon else None


def _is_flow(text: str, node: Node) -> bool:
    return text.startswith("{", node.start)


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _end(text: str, member: Member) -> int:
    """Where a member's last value ends: the reader ends a block at what follows it."""
    node = member.node
    while node.members or node.items:
        if text.startswith(("{", "["), node.start):
            return node.end
        inner = [one.node for one in node.members or ()] or list(node.items or ())
        node = max(inner, key=lambda one: one.start)
        if node.end <= node.start and node is not member.node:
            break
    if node.end <= node.start:
        colon = _COLON.match(text, member.key_end)
        return max(node.end, colon.end() if colon else member.key_end)
    return node.start + len(text[node.start : node.end].rstrip())


def _is_own(document: Document, path: Path) -> bool:
    """Whether what stands at a path stands there only."""
    if _SHARED.search(document.text):
        return False
    node = document.root
    for depth in range(len(path)):
        member = document.member(path[: depth + 1])
        if node is None or (member is not None and not node.start <= member.key_start <= node.end):
            return False
        node = document.node(path[: depth + 1])
    return True


def _with_commas(text: str, node: Node) -> Node:
    """A mapping in braces with the commas after its values, which YAML's reader does not keep."""
    members = []
    for member in node.members or ():
        comma = _AFTER.match(text, member.node.end)
        at = comma.start(1) if comma and comma[1] else None
        # Values are not looked at, and text without quotes ends at its comma.
        inner = Node(None, member.node.start, member.node.end)
        members.append(Member(member.key, member.key_start, member.key_end, inner, at))
    return mapping(members, node.start, node.end)
