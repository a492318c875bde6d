"""Findings for people: place, message, the line with a caret under what is meant, and what to write instead."""

import re
from collections.abc import Callable, Iterator

from dsgen.lint.finding import Finding
from dsgen.report.lint_view import LintView

_WIDTH = 100
_LINE_BREAK = re.compile(r"\r\n?|\n")
# Select Graphic Rendition of ECMA-48: 1 bold, 31 red, 33 yellow, 36 cyan.
_COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;36", "place": "1", "caret": "1;31", "help": "36"}


Paint = Callable[[str, str], str]
"""(text, which of the colours) -> the text in that colour."""


def lint_text(view: LintView) -> str:
    """All findings and a last line that counts them."""
    lines = {name: _LINE_BREAK.split(text) for name, text in view.texts.items()}
    paint = _painted if view.colour else _unpainted
    blocks = [block for finding in view.findings for block in _block(finding, lines.get(finding.file, []), paint)]
    return "\n".join([*blocks, count(view)])


def _unpainted(text: str, _colour: str) -> str:
    return text


def _painted(text: str, colour: str) -> str:
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def _block(finding: Finding, lines: list[str], paint: Paint) -> Iterator[str]:
    place = paint(f"{finding.file}:{finding.range.line}:{finding.range.column}", "place")
    severity = paint(finding.severity, finding.severity)
    yield f"{place}: {severity}: {finding.message} [{finding.code} {finding.rule}]"
    if finding.range.line <= len(lines):
        yield from _excerpt(finding, lines[finding.range.line - 1], paint)
    for related in finding.related:
        where = f"{related.file}:" if related.file else ""
        yield f"  see {where}{related.range.line}:{related.range.column}: {related.message}"
    if finding.help:
        yield f"  {paint('help', 'help')}: {finding.help}"


def _excerpt(finding: Finding, content: str, paint: Paint) -> Iterator[str]:
    line, column, end_line, end_column = finding.range
    end = end_column if end_line == line else len(content) + 1
    # A long line is shown around the place only.
    cut = max(0, column - _WIDTH // 2) if len(content) > _WIDTH else 0
    shown = content[cut : cut + _WIDTH]
    start = column - 1 - cut
    yield f"  {_plain(shown)}"
    yield f"  {' ' * start}{paint('^' * max(1, min(end - column, len(shown) - start)), 'caret')}"


def _plain(text: str) -> str:
    """Tabs and what does not print become single blanks, so that the caret stands right."""
    return "".join(char if char.isprintable() else " " for char in text)


def count(view: LintView) -> str:
    """``3 files checked: 1 error, 2 warnings``, and how many were fixed."""
    checked = f"{number(len(view.files), 'file')} checked"
    counts = {name: sum(finding.severity == name for finding in view.findings) for name in ("error", "warning", "info")}
    parts = [f"{n} info" if name == "info" else number(n, name) for name, n in counts.items() if n]
    cured = [f"{view.fixed} fixed"] if view.fixed is not None else []
    return f"{checked}: {', '.join([*cured, *(parts or ['no findings'])])}"


def number(count: int, name: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {name}{'' if count == 1 else 's'}"
