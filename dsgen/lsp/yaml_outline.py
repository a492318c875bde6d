"""YAML in block style while it is being written: mappings by the indentation of their lines.

What PyYAML refuses half-written (a key without its colon, a quote that is open) is passed over; all other lines keep
their place. Sections in braces are left to the reader of finished texts.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from dsgen.documents.document import Lines, Member, Node, Path, mapping
from dsgen.lsp.outline import UNKNOWN, Cursor

_LINE = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)(?P<key>\"[^\"]*\"|'[^']*'|[\w.$/-]+)[ ]*:(?=\s|$)[ \t]*(?P<value>.*)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_TYPED_KEY = re.compile(r"([ ]*(?:-[ ]+)*)([\w.\"'-]*)")
_TYPED_VALUE = re.compile(r"([ ]*(?:-[ ]+)*)(\"[^\"]*\"|'[^']*'|[\w.$/-]+)[ ]*:[ \t]+([^\s#]*)")
_REST = re.compile(r"[\w.\"'-]*")
_NAMED: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None}
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*(?:e[-+]\d+)?)?")
# A line of this many columns is no line of a config.
_MOST_COLUMNS = 2000


@dataclass(slots=True)
class _Block:
    """A mapping whose lines begin in one column."""

    column: int
    start: int
    path: Path
    members: list[Member] = field(default_factory=list)
    open_key: tuple[str, int, int] | None = None
    """The last key, which has nothing on its own line."""
    end: int = 0


def yaml_outline(text: str, cursor: int | None = None) -> tuple[Node, Cursor | None]:
    """The mapping of a text, and what is expected at the cursor."""
    scan = _Scan(text, cursor)
    return scan.run(), scan.cursor


class _Scan:
    def __init__(self, text: str, cursor: int | None) -> None:
        self._text = text
        self._at = cursor
        self.cursor: Cursor | None = None
        self._stack = [_Block(0, 0, ())]

    def run(self) -> Node:
        starts = Lines(self._text).starts
        for index, start in enumerate(starts):
            end = starts[index + 1] if index + 1 < len(starts) else len(self._text)
            line = self._text[start:end].rstrip("\r\n")
            if len(line) <= _MOST_COLUMNS:
                here = self._at is not None and start <= self._at <= start + len(line)
                self._line(line, start, here=here)
        while len(self._stack) > 1:
            self._pop()
        self._finish(self._stack[0])
        return mapping(self._stack[0].members, 0, len(self._text))

    def _line(self, line: str, start: int, *, here: bool) -> None:
        if here and self._at is not None and self._is_key_here(line, start, self._at):
            return
        found = _LINE.match(line)
        if found is None:
            return
        column = len(found["indent"])
        self._settle(column, start + column)
        block = self._stack[-1]
        self._finish(block)
        key_start, key_end = (start + at for at in found.span("key"))
        key = found["key"].strip("\"'")
        value = _COMMENT.sub("", found["value"]).rstrip()
        if here and self._at is not None and key_end < self._at:
            self._expect_value(line, start, key, block)
        if value:
            at = start + found.start("value")
            block.members.append(Member(key, key_start, key_end, Node(_scalar(value), at, at + len(value)), None))
        else:
            block.open_key = (key, key_start, key_end)
        block.end = start + len(line)

    def _settle(self, column: int, start: int) -> None:
        """Closes and opens mappings so that the innermost one begins in a column."""
        while len(self._stack) > 1 and self._stack[-1].column > column:
            self._pop()
        block = self._stack[-1]
        if column > block.column or (block.open_key is None and not block.members and block.path == ()):
            if block.open_key is not None and column > block.column:
                self._stack.append(_Block(column, start, (*block.path, block.open_key[0]), end=start))
            elif not block.members:
                block.column = column

    def _pop(self) -> None:
        block = self._stack.pop()
        self._finish(block)
        around = self._stack[-1]
        assert around.open_key is not None, "a mapping stands under a key"
        key, start, end = around.open_key
        around.open_key = None
        around.members.append(Member(key, start, end, mapping(block.members, block.start, block.end), None))

    def _finish(self, block: _Block) -> None:
        if block.open_key is not None:
            key, start, end = block.open_key
            block.members.append(Member(key, start, end, Node(None, end, end), None))
            block.open_key = None

    def _is_key_here(self, line: str, start: int, cursor: int) -> bool:
        """Whether a key is being written at the cursor, on a line that has no colon yet."""
        typed = _TYPED_KEY.fullmatch(line[: cursor - start])
        rest = line[cursor - start :]
        tail = _REST.match(rest)
        if typed is None or tail is None:
            return False
        column, after = len(typed[1]), rest[tail.end() :].strip()
        if after and not after.startswith(("#", ":")):
            return False
        path = self._path_at(column)
        word = typed[2]
        self.cursor = Cursor(
            root=0,
            path=path,
            key=None,
            start=cursor - len(word),
            end=cursor + tail.end(),
            quote="",
            has_colon=after.startswith(":"),
        )
        return not after.startswith(":")

    def _path_at(self, column: int) -> Path:
        for block in reversed(self._stack):
            if column > block.column and block.open_key is not None:
                return (*block.path, block.open_key[0])
            if column >= block.column:
                return block.path
        return ()

    def _expect_value(self, line: str, start: int, key: str, block: _Block) -> None:
        assert self._at is not None, "the cursor is on this line"
        typed = _TYPED_VALUE.fullmatch(line[: self._at - start])
        if typed is None:
            return
        rest = _REST.match(line, self._at - start)
        end = start + rest.end() if rest else self._at
        self.cursor = Cursor(root=0, path=block.path, key=key, start=self._at - len(typed[3]), end=end, quote="")


def _scalar(text: str) -> Any:
    if text.lower() in _NAMED:
        return _NAMED[text.lower()]
    if _NUMBER.fullmatch(text):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:  # more digits than Python reads
            return UNKNOWN
    return text.strip("\"'")
