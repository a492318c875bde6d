"""Strict JSON as Python's ``json`` reads it (transformers and accelerate load their files with it).

Like that library it takes NaN, Infinity and -Infinity, and refuses a byte order mark and control characters in strings.
"""

import re

from dsgen.documents.document import MAX_DEPTH, DocumentError, Member, Node, array, mapping
from dsgen.documents.numbers import whole

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_CHUNK = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def read_json(text: str) -> Node:
    """The root of the document.

    Raises:
        DocumentError: the text is not JSON.
    """
    if text.startswith("\ufeff"):
        raise DocumentError("the file starts with a byte order mark", 0, help="save it as UTF-8 without BOM")
    root, end = _value(text, _skip(text, 0), 0)
    end = _skip(text, end)
    if end != len(text):
        raise DocumentError("there is more text after the end of the document", end, len(text))
    return root


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    first = text[at : at + 1]
    if first == '"':
        value, end = _string(text, at)
        return Node(value, at, end), end
    if first == "{":
        return _object(text, at, depth + 1)
    if first == "[":
        return _array(text, at, depth + 1)
    number = _NUMBER.match(text, at)
    if number:
        integer, fraction, exponent = number.groups()
        end = number.end()
        if fraction or exponent:
            return Node(float(number.group()), at, end), end
        return Node(whole(integer, at), at, end), end
    for word, constant in _WORDS.items():
        if text.startswith(word, at):
            return Node(constant, at, at + len(word)), at + len(word)
    raise _no_value(text, at)


def _no_value(text: str, at: int) -> DocumentError:
    if at >= len(text):
        return DocumentError("the file ends where a value should stand", at)
    if text[at] in "#/":
        return DocumentError("a comment is not JSON", at)
    if text[at] in "]}":
        return DocumentError(f"'{text[at]}' stands where a value should be (a trailing comma is not JSON)", at)
    return DocumentError(f"{text[at]!r} does not start a JSON value", at, help='text goes in double quotes: "..."')


def _check_depth(depth: int, at: int) -> None:
    if depth > MAX_DEPTH:
        raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", at)


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth, start)
    members: list[Member] = []
    at = _skip(text, start + 1)
    if text[at : at + 1] == "}":
        return mapping(members, start, at + 1), at + 1
    while True:
        if text[at : at + 1] != '"':
            raise _no_key(text, at, bool(members))
        key, key_end = _string(text, at)
        colon = _skip(text, key_end)
        if text[colon : colon + 1] != ":":
            raise DocumentError("a ':' is missing after this key", at, key_end)
        node, end = _value(text, _skip(text, colon + 1), depth)
        after = _skip(text, end)
        mark = text[after : after + 1]
        members.append(Member(key, at, key_end, node, after if mark == "," else None))
        if mark == "}":
            return mapping(members, start, after + 1), after + 1
        if mark != ",":
            raise _no_comma(text, after, end, "}")
        at = _skip(text, after + 1)


def _no_key(text: str, at: int, after_comma: bool) -> DocumentError:
    if at >= len(text):
        return DocumentError("the file ends inside an object: a '}' is missing", at)
    if text[at] in "#/":
        return DocumentError("a comment is not JSON", at)
    if text[at] == "}" and after_comma:
        return DocumentError("a comma before '}' is not JSON", at, help="remove the comma")
    return DocumentError("a key in double quotes should stand here", at)


def _no_comma(text: str, at: int, value_end: int, closing: str) -> DocumentError:
    if at >= len(text):
        return DocumentError(f"the file ends here: a '{closing}' is missing", at)
    if text[at] in "#/":
        return DocumentError("a comment is not JSON", at)
    return DocumentError(f"a comma or '{closing}' is missing after this value", value_end - 1, value_end)


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth, start)
    items: list[Node] = []
    at = _skip(text, start + 1)
    if text[at : at + 1] == "]":
        return array(items, start, at + 1), at + 1
    while True:
        node, end = _value(text, at, depth)
        items.append(node)
        after = _skip(text, end)
        mark = text[after : after + 1]
        if mark == "]":
            return array(items, start, after + 1), after + 1
        if mark != ",":
            raise _no_comma(text, after, end, "]")
        at = _skip(text, after + 1)


def _string(text: str, start: int) -> tuple[str, int]:
    chunks: list[str] = []
    at = start + 1
    while True:
        match = _CHUNK.match(text, at)
        assert match is not None  # the pattern matches nothing, too
        chunks.append(match.group())
        at = match.end()
        mark = text[at : at + 1]
        if mark == '"':
            return "".join(chunks), at + 1
        if mark == "\\":
            char, at = _escape(text, at)
            chunks.append(char)
        elif mark == "":
            raise DocumentError("this string is not closed", start)
        else:
            raise DocumentError(f"control character {mark!r} in a string", at, help="write it as an escape (\\n, \\t)")


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character that ``\\...`` at this place stands for, and where it ends."""
    letter = text[at + 1 : at + 2]
    if letter != "u":
        if letter not in _ESCAPES or not letter:
            raise DocumentError("unknown escape in a string", at, at + 2, help="a backslash itself is written \\\\")
        return _ESCAPES[letter], at + 2
    code = _code_unit(text, at)
    if code is None:
        raise DocumentError("\\u wants four hexadecimal digits", at, at + 2)
    if 0xD800 <= code <= 0xDBFF:
        low = _code_unit(text, at + 6)
        if low is not None and 0xDC00 <= low <= 0xDFFF:
            return chr(0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))), at + 12
    return chr(code), at + 6


def _code_unit(text: str, at: int) -> int | None:
    digits = _HEX.match(text, at + 2) if text.startswith("\\u", at) else None
    return int(digits.group(), 16) if digits else None
