"""A Python file as rules see it. It is parsed, never imported or run."""

import ast
import io
import tokenize
import warnings
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from dsgen.documents.document import Lines, Range, Span
from dsgen.lint.finding import Edit, Fix
from dsgen.lint.ignores import Ignore, ignores, may_hold_ignores
from dsgen.lint.mark import Change, On
from dsgen.lint.python.tree import Tree
from dsgen.lint.target import LintTarget

T = TypeVar("T")

# A training script has hundreds of lines; the largest files of the libraries some thousand. The tree of a file
# takes a few hundred times its size in memory.
MOST_BYTES = 4 << 20


class Unreadable(Exception):  # noqa: N818 - it names what the text is
    """The bytes are no Python that this interpreter parses."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = max(1, line)
        self.column = max(1, column)


class PythonFile:
    """The tree of a file, or why it could not be read."""

    def __init__(
        self, text: str, tree: Tree | None, problem: Unreadable | None = None, folder: Path | None = None
    ) -> None:
        self.text = text
        self.problem = problem
        self.folder = folder
        """Where the file lies, for configs that it names; None where it lies nowhere."""
        self._tree = tree
        self._memo: dict[Hashable, Any] = {}

    @property
    def is_read(self) -> bool:
        """Whether there is a tree for rules to look at."""
        return self._tree is not None

    @property
    def tree(self) -> Tree:
        assert self._tree is not None, "the runner asks rules about files that were read"
        return self._tree

    def once(self, work: "Callable[[PythonFile], T]") -> T:
        """The result of work that several rules share, done once."""
        if work not in self._memo:
            self._memo[work] = work(self)
        result: T = self._memo[work]
        return result

    # For the runner.

    @property
    def ignores(self) -> tuple[Ignore, ...]:
        """The comments that hide findings."""
        return self.once(_ignores)

    def locate(self, where: Any, on: On = "value") -> Range:  # noqa: ARG002 - a node has one place
        """Lines and columns of a node; of a statement that holds others only its first line."""
        if isinstance(where, Span):
            return self._lines.range(where.start, where.end)
        if self.problem is not None:
            return Range(self.problem.line, self.problem.column, self.problem.line, self.problem.column + 1)
        end_line, end_offset = where.end_lineno, where.end_col_offset
        if getattr(where, "body", None) and isinstance(where, ast.stmt):
            end_line, end_offset = where.lineno, len(self._line(where.lineno).rstrip().encode())
        return Range(
            where.lineno,
            self._column(where.lineno, where.col_offset),
            end_line,
            self._column(end_line, end_offset),
        )

    def path_of(self, where: Any) -> None:
        """Code has no keys."""

    def topics(self, target: LintTarget) -> None:
        """Rules about code look at all of it."""

    def fix(self, change: Change) -> Fix:
        """The edits of a change: each step replaces a node by a text."""
        return Fix(
            change.description, tuple(Edit(self.locate(step.path), step.value) for step in change.steps), change.safe
        )

    def _line(self, number: int) -> str:
        starts = self._lines.starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end] if number <= len(starts) else ""

    def _column(self, line: int, offset: int) -> int:
        """From the bytes that ``ast`` counts to code points from 1."""
        return len(self._line(line).encode()[:offset].decode(errors="replace")) + 1

    @property
    def _lines(self) -> Lines:
        return self.once(_lines)


def _lines(file: PythonFile) -> Lines:
    return Lines(file.text)


def _ignores(file: PythonFile) -> tuple[Ignore, ...]:
    if not file.is_read or not may_hold_ignores(file.text):
        return ()
    lines = _lines(file)
    return ignores(file.text, lines, _comments(file.text, lines))


def _comments(text: str, lines: Lines) -> Iterator[Span]:
    """Every comment; a text that only the parser takes, and not the tokenizer, has none from there on."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = lines.offset(token.start[0], token.start[1] + 1)
                yield Span(start, start + len(token.string))
    except (tokenize.TokenError, SyntaxError):
        return


def read_python(data: bytes, _target: LintTarget, name: str) -> PythonFile:
    """Reads a file as Python itself would: its encoding by PEP 263, its text by the grammar."""
    folder = Path(name).parent
    text = ""
    try:
        text = _text(data)
        return PythonFile(text, Tree(_parse(text)), folder=folder)
    except Unreadable as problem:
        return PythonFile(text, None, problem, folder)


def read_python_text(text: str, folder: Path) -> PythonFile:
    """A file that was decoded already, for what lies beside another one."""
    try:
        return PythonFile(text, Tree(_parse(text)), folder=folder)
    except Unreadable as problem:
        return PythonFile(text, None, problem, folder)


def _text(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise Unreadable(f"the file is larger than {MOST_BYTES >> 20} MiB, so it was not read")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding, newline="").read()
    except (SyntaxError, LookupError) as error:
        raise Unreadable(f"the encoding is not one that Python reads: {error}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{error.object[error.start]:02x} is not {error.encoding}"
        raise Unreadable(message, line) from None
    if "\0" in text:
        raise Unreadable("the text holds a NUL byte", text.count("\n", 0, text.index("\0")) + 1)
    # Form feeds count as blanks; the parser takes every line end, and so do our lines.
    return text


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a linted file's invalid escapes are no warnings of ours
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(f"not valid Python: {error.msg}", error.lineno or 1, error.offset or 1) from None
    except (RecursionError, MemoryError):
        raise Unreadable("nested too deeply for Python's own parser") from None
    except ValueError as error:
        raise Unreadable(f"not valid Python: {error}") from None
