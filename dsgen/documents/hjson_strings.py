"""Quoted and multi-line strings of HJSON, as the ``hjson`` library (3.1) reads them."""

import re

from dsgen.documents.document import DocumentError, LibraryFailure

_CHUNK = re.compile(r"""[^'"\\\x00-\x1f]*""")
_INDENT = re.compile(r"[ \t]*")
_FOUR = re.compile(r"(?:\r\n|[^\r]|\r){4}")  # characters as an open file shows them: CRLF is one
_LINE_BREAK = re.compile(r"\r\n?|\n")
_ESCAPES = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


def quoted_string(text: str, start: int) -> tuple[str, int]:
    """The string in single or double quotes at this place, and where it ends."""
    quote = text[start]
    chunks: list[str] = []
    at = start + 1
    while True:
        match = _CHUNK.match(text, at)
        assert match is not None  # the pattern matches nothing, too
        chunks.append(match.group())
        at = match.end()
        mark = text[at : at + 1]
        if mark == quote:
            return "".join(chunks), at + 1
        if mark in ("'", '"'):
            chunks.append(mark)
            at += 1
        elif mark == "\\":
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
        if letter not in _ESCAPES:
            raise DocumentError("unknown escape in a string", at, at + 2, help="a backslash itself is written \\\\")
        return _ESCAPES[letter], at + 2
    code, end = _code_unit(text, at)
    if code is None:
        raise DocumentError("\\u wants four hexadecimal digits", at, at + 2)
    if 0xD800 <= code <= 0xDBFF and text.startswith("\\u", end):
        low, low_end = _code_unit(text, end)
        if low is not None and 0xDC00 <= low <= 0xDFFF:
            return chr(0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))), low_end
    return chr(code), end


def _code_unit(text: str, at: int) -> tuple[int | None, int]:
    """The number of ``\\uXXXX`` and its end, as lenient as the library: whatever ``int(XXXX, 16)`` takes, but 0x."""
    match = _FOUR.match(text, at + 2)
    digits = match.group().replace("\r\n", "\n") if match else ""
    if match is None or digits[1] in "xX":
        return None, at
    try:
        code = int(digits, 16)
    except ValueError:
        return None, at
    if code < 0:
        raise LibraryFailure("\\u wants four hexadecimal digits", at, match.end())
    return code, match.end()


def multiline_string(text: str, start: int) -> tuple[str, int]:
    """The text between ``'''`` and ``'''``, less the indentation of its first line, and where it ends.

    Line breaks count as LF, for files are opened with Python's universal newlines.
    """
    indent = _columns_before(text, start)
    at = _past_blanks(text, start + 3)
    if at == len(text):
        raise LibraryFailure("this ''' is not closed", start, at)
    line_break = _LINE_BREAK.match(text, at)
    first_indent = 0
    if line_break:
        at, first_indent = line_break.end(), indent
    close = text.find("'''", at)
    if close < 0:
        raise DocumentError("this ''' is not closed", start, start + 3)
    lines = _LINE_BREAK.split(text[at:close])
    outdented = [_outdent(lines[0], first_indent), *(_outdent(line, indent) for line in lines[1:])]
    return "\n".join(outdented).removesuffix("\n"), close + 3


def _columns_before(text: str, at: int) -> int:
    line_start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    if line_start:
        return at - line_start
    # On the first line the library walks past the start of the text and on from its end, up to the last line break;
    # without any line break it fails.
    last = max(text.rfind("\n"), text.rfind("\r"))
    if last < 0:
        raise LibraryFailure("''' in a file of one line: DeepSpeed's reader fails on it", at, at + 3)
    return at + len(text) - 1 - last


def _past_blanks(text: str, at: int) -> int:
    match = _INDENT.match(text, at)
    return match.end() if match else at


def _outdent(line: str, columns: int) -> str:
    return line[min(columns, _past_blanks(line, 0)) :]
