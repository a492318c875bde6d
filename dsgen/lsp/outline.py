"""JSON, HJSON and dict literals in Python while they are being written: what stands there as far as it can be told.

The readers refuse a broken text, and a text in an editor is broken most of the time. This scan takes anything: a
missing comma, colon, quote or bracket ends what it has to end, and everything around keeps its place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dsgen.documents.document import MAX_DEPTH, Member, Node, Path, array, mapping

Language = Literal["json", "python"]

UNKNOWN = "auto"
"""Stands for a value that is computed or not yet written: whatever looks at it takes it for one that is filled in."""

_BLANK = re.compile(r"[^\S\r\n]+|\ufeff")
_LINE_BREAK = re.compile(r"\r\n?|\n")
_COMMENT = {"json": re.compile(r"(?:#|//)[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z)"), "python": re.compile(r"#[^\r\n]*")}
_LONG_STRING = re.compile(r"(?s)('''|\"\"\").*?(?:\1|\Z)")
# A string that is not closed ends with its line.
_STRING = re.compile(
    r"\"(?:[^\"\\\r\n]|\\[^\r\n])*(?:\"|\\?(?=[\r\n]|\Z))|'(?:[^'\\\r\n]|\\[^\r\n])*(?:'|\\?(?=[\r\n]|\Z))"
)
_WORD = re.compile(r"[^\s\"'{}\[\](),:#/]+|/")
_NUMBER = re.compile(r"-?(?:\d[\d_]*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
_NAMED: dict[str, Any] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSES = {"{": "}", "[": "]", "(": ")"}
_TYPED = re.compile(r"[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Cursor:
    """What may be written at one place."""

    root: int
    """Offset of the outermost object around it."""
    path: Path
    """Keys from there to the innermost object around it."""
    key: str | None
    """The key whose value stands there; None where a key does."""
    start: int
    end: int
    """What is replaced by what is chosen."""
    quote: str
    """The quote with which the user began; empty for none."""
    has_colon: bool = False
    """Whether a colon follows, so that only the key is missing."""
    comma_at: int | None = None
    """Where a comma is missing before it."""
    more_follows: bool = False
    """Whether another key follows without a comma between."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What was found."""

    roots: tuple[Node, ...]
    """Outermost objects, in the order of the text."""
    cursor: Cursor | None = None
    has_braces: bool = True


@dataclass(slots=True)
class _Frame:
    opening: str
    start: int
    path: Path | None
    """None where no chain of keys leads to it."""
    root: int
    expects: Literal["key", "colon", "value", "more"] = "key"
    key: tuple[str, int, int] | None = None
    members: list[Member] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    done_at: int = 0
    """Where what was last read ends."""

    def take(self, node: Node | None, at: int) -> None:
        """A value, or its absence, after the key."""
        if self.opening == "{" and self.key is not None:
            key, start, end = self.key
            self.members.append(Member(key, start, end, node or Node(UNKNOWN, at, at), None))
        elif self.opening == "[" and node is not None:
            self.items.append(node)
        self.key, self.done_at = None, node.end if node else at
        self.expects = "more"

    def comma(self, at: int) -> None:
        if self.opening == "{" and self.members and self.expects == "more":
            last = self.members.pop()
            self.members.append(Member(last.key, last.key_start, last.key_end, last.node, at))

    def node(self, end: int) -> Node:
        if self.opening == "{":
            return mapping(self.members, self.start, end)
        return array(self.items, self.start, end) if self.opening == "[" else Node(UNKNOWN, self.start, end)


def outline(text: str, language: Language, cursor: int | None = None) -> Outline:
    """Scans a text; with a cursor also what is expected there."""
    return _Scan(text, language, cursor).run()


class _Scan:
    def __init__(self, text: str, language: Language, cursor: int | None) -> None:
        self._text = text
        self._language: Language = language
        self._at_cursor = cursor
        self._cursor: Cursor | None = None
        self._is_decided = cursor is None
        self._roots: list[Node] = []
        first = _significant(text, language, 0)
        self._braceless = language == "json" and text[first : first + 1] not in ("{", "[")
        base = _Frame("{", first, (), first) if self._braceless else _Frame("(", 0, None, 0)
        self._stack = [base]
        self._new_line = True

    def run(self) -> Outline:
        at, text = 0, self._text
        while at < len(text) and len(self._stack) <= MAX_DEPTH:
            start, at = at, self._token(at)
            assert at > start, "every step goes on"
        if at >= len(text):
            self._decide(len(text), len(text), "")
        while len(self._stack) > 1:
            self._close(len(text))
        if self._braceless:
            base = self._stack[0]
            if base.key is not None:
                base.take(None, len(text))
            self._roots.append(base.node(len(text)))
        return Outline(tuple(self._roots), self._cursor, not self._braceless)

    def _token(self, at: int) -> int:
        """Takes the token at a place; returns where it ends."""
        text = self._text
        for blank, is_break in ((_BLANK, False), (_LINE_BREAK, True)):
            found = blank.match(text, at)
            if found:
                self._new_line = self._new_line or is_break
                return found.end()
        comment = _COMMENT[self._language].match(text, at)
        if comment:
            # Nothing is offered in a comment; right after one that its line ends, neither.
            self._decide(at, at, "")
            if not self._is_decided and at < (self._at_cursor or 0) <= comment.end():
                self._is_decided = True
            return comment.end()
        char = text[at]
        string = (_LONG_STRING.match(text, at) or _STRING.match(text, at)) if char in "\"'" else None
        if string:
            self._word(at, string.end(), char)
            end = string.end()
        elif char in "{[(":
            self._decide(at, at, "")
            self._open(char, at)
            end = at + 1
        elif char in "}])":
            self._decide(at, at, "")
            self._shut(char, at)
            end = at + 1
        elif char in ":,":
            self._decide(at, at, "")
            self._mark(char, at)
            end = at + 1
        else:
            word = _WORD.match(text, at)
            end = word.end() if word else at + 1
            self._word(at, end, "")
        self._new_line = False
        return end

    def _word(self, start: int, end: int, quote: str) -> None:
        frame = self._stack[-1]
        text = self._text[start:end]
        is_closed = bool(quote) and len(text) > 1 and text.endswith(quote)
        is_key = frame.opening == "{" and (frame.expects in ("key", "colon") or self._begins_anew(quote))
        if is_key and frame.expects == "more":
            self._decide(start, end, quote, is_closed=is_closed, as_key=True)
        else:
            self._decide(start, end, quote, is_closed=is_closed)
        if is_key:
            if frame.key is not None:
                frame.take(None, frame.key[2])
            frame.key = (_unquoted(text) if quote else text, start, end)
            frame.expects, frame.done_at = "colon", end
        elif frame.expects == "more" and frame.opening == "{":
            # The rest of an expression, or of a text without quotes.
            frame.done_at = end
            self._widen(frame, end)
        else:
            frame.take(Node(self._value(text, quote), start, end), start)

    def _begins_anew(self, quote: str) -> bool:
        """Whether a word after a whole value starts a member: on a new line, where a comma was forgotten."""
        return self._new_line and self._stack[-1].expects == "more" and (bool(quote) or self._language == "json")

    def _widen(self, frame: _Frame, end: int) -> None:
        """More stands where the last value ended: an expression, or words without quotes."""
        if frame.members and frame.expects == "more":
            last = frame.members.pop()
            value = UNKNOWN if self._language == "python" else self._text[last.node.start : end]
            frame.members.append(
                Member(last.key, last.key_start, last.key_end, Node(value, last.node.start, end), None)
            )

    def _value(self, text: str, quote: str) -> Any:
        if quote:
            return _unquoted(text)
        if text in _NAMED:
            return _NAMED[text]
        if _NUMBER.fullmatch(text):
            try:
                return float(text) if set(text) & set(".eE") else int(text)
            except ValueError:  # more digits than Python reads
                return UNKNOWN
        return text if self._language == "json" else UNKNOWN

    def _open(self, char: str, at: int) -> None:
        frame = self._stack[-1]
        path: Path | None = None
        if frame.path is not None and frame.opening == "{" and frame.key is not None:
            path = (*frame.path, frame.key[0])
        elif frame.path is not None and frame.opening == "[":
            path = (*frame.path, len(frame.items))
        is_root = path is None and char == "{" and (self._language == "python" or len(self._stack) == 1)
        expects: Literal["key", "value"] = "key" if char == "{" else "value"
        self._stack.append(_Frame(char, at, () if is_root else path, at if is_root else frame.root, expects))

    def _shut(self, char: str, at: int) -> None:
        opening = next(one for one, other in _CLOSES.items() if other == char)
        if not any(frame.opening == opening for frame in self._stack[1:]):
            return
        while self._stack[-1].opening != opening:
            self._close(at)
        self._close(at + 1)

    def _close(self, end: int) -> None:
        frame = self._stack.pop()
        if frame.key is not None:
            frame.take(None, min(frame.done_at, end))
        node = frame.node(end)
        if frame.opening == "{" and frame.path == ():
            self._roots.append(node)
        around = self._stack[-1]
        if around.opening == "{" and around.expects in ("more", "key"):
            around.done_at = end
            self._widen(around, end)
        else:
            around.take(node, frame.start)

    def _mark(self, char: str, at: int) -> None:
        frame = self._stack[-1]
        if frame.opening != "{":
            return
        if char == ",":
            if frame.key is not None:
                frame.take(None, frame.key[2])
            frame.comma(at)
            frame.expects = "key"
        elif frame.expects == "colon":
            frame.expects = "value"
        elif frame.expects == "more" and frame.members and self._may_be_key(frame.members[-1].node):
            # What was taken for a value is the next key: the value before it is not written yet.
            last = frame.members.pop()
            written = last.node
            frame.members.append(
                Member(last.key, last.key_start, last.key_end, Node(UNKNOWN, last.key_end, last.key_end), None)
            )
            frame.key = (written.value, written.start, written.end)
            frame.expects = "value"

    def _may_be_key(self, node: Node) -> bool:
        is_quoted = self._text[node.start : node.start + 1] in ("'", '"')
        return isinstance(node.value, str) and node.end > node.start and (is_quoted or self._language == "json")

    def _decide(self, start: int, end: int, quote: str, *, is_closed: bool = False, as_key: bool = False) -> None:
        """Settles what is expected at the cursor, once the token that reaches it comes."""
        cursor = self._at_cursor
        if self._is_decided or cursor is None or cursor > end or (cursor == end > start and is_closed):
            return
        self._is_decided = True
        frame = self._stack[-1]
        inside = start < cursor
        on_new_line = self._on_new_line(frame.done_at, cursor)
        if frame.opening != "{" or frame.path is None:
            return
        is_key = as_key or frame.expects == "key" or (frame.expects == "more" and on_new_line and not inside)
        if frame.expects == "colon" and on_new_line and frame.key is not None:
            is_key = True
        if not is_key and frame.expects != "value":
            return
        token = self._text[start:end] if inside else ""
        written_to = cursor if not inside else _end_of_word(self._text, cursor, quote if is_closed else "")
        after = _significant(self._text, self._language, written_to)
        needs_comma = bool(frame.members) and frame.members[-1].comma is None and frame.expects == "more"
        self._cursor = Cursor(
            root=frame.root,
            path=frame.path,
            key=None if is_key else (frame.key or ("", 0, 0))[0],
            start=start if token else cursor,
            end=written_to,
            quote=quote if token else "",
            has_colon=is_key and self._text[after : after + 1] == ":",
            comma_at=frame.done_at if is_key and needs_comma and self._takes_comma(frame) else None,
            more_follows=self._text[after : after + 1] in tuple("\"'") and not self._braceless,
        )

    def _takes_comma(self, frame: _Frame) -> bool:
        last = frame.members[-1].node
        is_bare = isinstance(last.value, str) and self._text[last.start : last.start + 1] not in ("'", '"')
        return not self._braceless and (not is_bare or self._language == "python")

    def _on_new_line(self, start: int, end: int) -> bool:
        return _LINE_BREAK.search(self._text, start, end) is not None


def _end_of_word(text: str, at: int, quote: str) -> int:
    """Where what the cursor stands in ends: the word, and the quote that closes it."""
    found = _TYPED.match(text, at)
    end = found.end() if found else at
    return end + 1 if quote and text.startswith(quote, end) else end


def _significant(text: str, language: Language, at: int) -> int:
    """The next place that is neither blank nor comment."""
    while at < len(text):
        found = _BLANK.match(text, at) or _LINE_BREAK.match(text, at) or _COMMENT[language].match(text, at)
        if found is None or found.end() == at:
            return at
        at = found.end()
    return at


def _unquoted(text: str) -> str:
    for quote in ("'''", '"""', text[0]):
        if text.startswith(quote) and text.endswith(quote) and len(text) >= 2 * len(quote):
            return text[len(quote) : len(text) - len(quote)]
    return text[1:]


def root_at(roots: Sequence[Node], start: int) -> Node | None:
    """The outermost object that begins at an offset."""
    return next((root for root in roots if root.start == start), None)
