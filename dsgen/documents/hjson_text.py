"""HJSON as the ``hjson`` library (3.1) reads it: DeepSpeed loads its config files with that library.

Beyond JSON: comments (``//``, ``#``, ``/* */``), commas that may be missing or trail, single quotes, keys and strings
without quotes, ``'''`` for text of several lines, and a root object without braces. The library's own quirks are kept
where they decide what a config means: 5e8 is an int, and text without quotes runs to the end of its line.
"""

import re

from dsgen.documents.document import MAX_DEPTH, DocumentError, LibraryFailure, Member, Node, array, mapping
from dsgen.documents.hjson_strings import multiline_string, quoted_string
from dsgen.documents.numbers import whole

_SPACE = re.compile(r"[ \t\n\r]*")
_TO_LINE_END = re.compile(r"[^\r\n]*")
# Where a number, true, false or null may end; only the first such place can decide, for none of them contains one.
_TO_WORD_END = re.compile(r"(?:[^\r\n,}\]#/]|/(?![/*]))*")
_TO_KEY_END = re.compile(r"[^:{}\[\],]*")
_KEY = re.compile(r"[^ \t\n\r]+[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?[\t ]*")
_WORDS = {"null": None, "true": True, "false": False}


def read_hjson(text: str) -> Node:
    """The root of the document; an empty one is ``{}``.

    Raises:
        DocumentError: the library would refuse the text.
    """
    start = 1 if text.startswith("\ufeff") else 0
    at = _skip(text, start)
    if at == len(text) and start == 0:
        return mapping([], at, at)
    if text[at : at + 1] in ("{", "["):
        root, end = _value(text, at, 0)
    else:
        root, end = _braceless(text, at)
    end = _skip(text, end)
    if end != len(text):
        raise DocumentError("there is more text after the end of the document", end, len(text))
    return root


def _braceless(text: str, at: int) -> tuple[Node, int]:
    try:
        return _members(text, at, at, "", 0)
    except LibraryFailure:
        raise
    except DocumentError as problem:
        # Not "key: value" lines, so perhaps one bare value; if it is neither, the first problem is the telling one.
        try:
            return _value(text, at, 0)
        except DocumentError:
            raise problem from None


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _skip(text: str, at: int) -> int:
    """The next place that is neither blank nor comment."""
    while True:
        at = _match_end(_SPACE, text, at)
        if text.startswith(("#", "//"), at):
            at = _match_end(_TO_LINE_END, text, at)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise LibraryFailure("this comment is not closed", at, at + 2)
            at = end + 2
        else:
            return at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    first = text[at : at + 1]
    if first == "{" or first == "[":
        if depth >= MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", at)
        return _object(text, at, depth + 1) if first == "{" else _array(text, at, depth + 1)
    if first == '"' or first == "'":
        value, end = (multiline_string if text.startswith("'''", at) else quoted_string)(text, at)
        return Node(value, at, end), end
    if first == "":
        raise DocumentError("the file ends where a value should stand", at)
    if first in "}],:":
        raise DocumentError(f"'{first}' stands where a value should be", at)
    return _bare(text, at)


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    at = _skip(text, start + 1)
    if text[at : at + 1] == "}":
        return mapping([], start, at + 1), at + 1
    return _members(text, start, at, "}", depth)


def _members(text: str, start: int, at: int, closing: str, depth: int) -> tuple[Node, int]:
    """Members up to ``closing`` (``}``, or the end of the text for a root without braces)."""
    members: list[Member] = []
    while True:
        key, key_start, key_end = _key(text, at)
        colon = _skip(text, key_end)
        if text[colon : colon + 1] != ":":
            raise DocumentError("a ':' is missing after this key", key_start, key_end)
        node, end = _value(text, _skip(text, colon + 1), depth)
        at = _skip(text, end)
        comma = at if text[at : at + 1] == "," else None
        members.append(Member(key, key_start, key_end, node, comma))
        if comma is not None:
            at = _skip(text, comma + 1)
        if text[at : at + 1] == closing:
            end = at + 1 if closing else node.end
            return mapping(members, start, end), at + len(closing)


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        if at >= len(text):
            raise DocumentError("the file ends inside an array: a ']' is missing", at)
        node, end = _value(text, at, depth)
        items.append(node)
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return array(items, start, at + 1), at + 1


def _key(text: str, at: int) -> tuple[str, int, int]:
    """The key at this place, and where it starts and ends."""
    if text[at : at + 1] in ('"', "'"):
        key, end = quoted_string(text, at)
        return key, at, end
    end = _match_end(_TO_KEY_END, text, at)
    if end == len(text):
        raise DocumentError("the file ends where a key and its ':' should stand", at, max(end, at + 1))
    if text[end] != ":":
        raise DocumentError(f"'{text[end]}' stands where a key should be", end)
    if end == at:
        raise DocumentError("':' without a key before it", at)
    raw = text[at:end]
    if not _KEY.fullmatch(raw):
        raise DocumentError("a key with blanks in it needs quotes", at, at + len(raw.rstrip()))
    key = raw.rstrip() if raw[-1] in " \t\n\r" else raw
    return key, at, at + len(key)


def _bare(text: str, at: int) -> tuple[Node, int]:
    """A number, true, false, null, or text without quotes, which runs to the end of the line."""
    end = _match_end(_TO_WORD_END, text, at)
    word = text[at:end].strip()
    if word in _WORDS and text[at] in "ntf":
        return Node(_WORDS[word], at, at + len(word)), end
    number = _NUMBER.match(text, at) if text[at] in "-0123456789" else None
    if number and number.end() == end:
        return _number(number, at), end
    end = _match_end(_TO_LINE_END, text, end)
    raw = text[at:end]
    value = raw.strip()
    start = at + len(raw) - len(raw.lstrip())
    return Node(value, start, start + len(value)), end


def _number(match: re.Match[str], at: int) -> Node:
    integer, fraction, exponent = match.groups()
    digits = integer + (fraction or "") + (exponent or "")
    end = at + len(digits)
    if not (fraction or exponent):
        return Node(whole(integer, at), at, end)
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise LibraryFailure("this number is too large: DeepSpeed's reader fails on it", at, end)
    # The library turns whole floats below 1e10 into ints: 5e8 is 500000000, 1.0 is 1.
    return Node(int(value) if value.is_integer() and abs(value) < 1e10 else value, at, end)
