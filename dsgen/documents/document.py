"""A read document: values, and the place in the text of every key and value.

Offsets count code points from 0, ends are exclusive. Lines and columns (for people) count from 1.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""

# Documents nest a handful of levels. Python's own readers give up near a thousand with a RecursionError;
# a bound far below that makes the refusal a clear one and keeps every walk over a tree safe.
MAX_DEPTH = 128

_LINE_BREAK = re.compile(r"\r\n?|\n")


class Range(NamedTuple):
    """A stretch of text for people: lines and columns from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text by offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place. ``members`` is set for mappings, ``items`` for arrays."""

    value: Any
    start: int
    end: int
    members: "tuple[Member, ...] | None" = None
    items: "tuple[Node, ...] | None" = None


@dataclass(frozen=True, slots=True)
class Member:
    """One ``key: value`` of a mapping."""

    key: str
    key_start: int
    key_end: int
    """With its quotes, where it has any."""
    node: Node
    comma: int | None
    """Offset of the comma after the value; None where there is none."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that stands more than once in one mapping: where first and where last, which is the one that counts."""

    path: Path
    first: Member
    last: Member


class DocumentError(Exception):
    """The text is not what its dialect allows; offsets say where."""

    def __init__(self, message: str, start: int, end: int | None = None, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = start + 1 if end is None else end
        self.help = help


class LibraryFailure(DocumentError):  # noqa: N818 - it names what happens, like KeyboardInterrupt
    """A text on which the library of the dialect dies of an IndexError or the like, rather than refuse it."""


def mapping(members: list[Member], start: int, end: int) -> Node:
    """A mapping node; of keys that stand twice the last one counts, as in ``dict``."""
    return Node({member.key: member.node.value for member in members}, start, end, members=tuple(members))


def array(items: list[Node], start: int, end: int) -> Node:
    """An array node."""
    return Node([item.value for item in items], start, end, items=tuple(items))


class Lines:
    """Turns offsets of one text into lines and columns. A line ends at LF, CRLF or a lone CR."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self.starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self.starts, min(offset, self._length))
        return line, offset - self.starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Offset of a line and column."""
        return self.starts[line - 1] + column - 1

    def range(self, start: int, end: int) -> Range:
        """Lines and columns of a stretch."""
        return Range(*self.place(start), *self.place(end))


@dataclass(frozen=True)
class Document:
    """A text, and what was read from it. ``root`` is None where it could not be read; ``problem`` then says why."""

    text: str
    root: Node | None = None
    problem: DocumentError | None = None

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def member(self, path: Path) -> Member | None:
        """The last member at a path of keys; None where there is none."""
        node, found = self.root, None
        for step in path:
            node, found = _step(node, step)
            if node is None:
                return None
        return found

    def node(self, path: Path) -> Node | None:
        """The value at a path; None where there is none."""
        node = self.root
        for step in path:
            node, _ = _step(node, step)
        return node

    def duplicates(self) -> Iterator[Duplicate]:
        """Every key that stands more than once in its mapping."""
        if self.root is not None:
            yield from _duplicates(self.root, ())


def _step(node: Node | None, step: str | int) -> tuple[Node | None, Member | None]:
    if node is None:
        return None, None
    if isinstance(step, int):
        items = node.items or ()
        return (items[step], None) if step < len(items) else (None, None)
    for member in reversed(node.members or ()):
        if member.key == step:
            return member.node, member
    return None, None


def _duplicates(node: Node, path: Path) -> Iterator[Duplicate]:
    members = node.members or ()
    if len(members) > len(node.value if node.members else ()):
        first: dict[str, Member] = {}
        last: dict[str, Member] = {}
        for member in members:
            first.setdefault(member.key, member)
            last[member.key] = member
        yield from (Duplicate((*path, key), first[key], last[key]) for key in first if first[key] is not last[key])
    for member in members:
        yield from _duplicates(member.node, (*path, member.key))
    for index, item in enumerate(node.items or ()):
        yield from _duplicates(item, (*path, index))
