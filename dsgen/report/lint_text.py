"""Findings for people: place, message, the line with a caret under what is meant, and what to write instead."""

import re
from collections.abc import Iterator, Mapping, Sequence

from dsgen.lint.finding import Finding

_WIDTH = 100
_LINE_BREAK = re.compile(r"\r\n?|\n")


def lint_text(files: int, findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """All findings and a last line that counts them; ``texts`` holds the files by name."""
    lines = {name: _LINE_BREAK.split(text) for name, text in texts.items()}
    blocks = [block for finding in findings for block in _block(finding, lines.get(finding.file, []))]
    return "\n".join([*blocks, _count(files, findings)])


def _block(finding: Finding, lines: list[str]) -> Iterator[str]:
    place = f"{finding.file}:{finding.range.line}:{finding.range.column}"
    yield f"{place}: {finding.severity}: {finding.message} [{finding.code} {finding.rule}]"
    if finding.range.line <= len(lines):
        yield from _excerpt(finding, lines[finding.range.line - 1])
    for related in finding.related:
        yield f"  see {related.range.line}:{related.range.column}: {related.message}"
    if finding.help:
        yield f"  help: {finding.help}"


def _excerpt(finding: Finding, content: str) -> Iterator[str]:
    line, column, end_line, end_column = finding.range
    end = end_column if end_line == line else len(content) + 1
    # A long line is shown around the place only.
    cut = max(0, column - _WIDTH // 2) if len(content) > _WIDTH else 0
    shown = content[cut : cut + _WIDTH]
    start = column - 1 - cut
    yield f"  {_plain(shown)}"
    yield f"  {' ' * start}{'^' * max(1, min(end - column, len(shown) - start))}"


def _plain(text: str) -> str:
    """Tabs and what does not print become single blanks, so that the caret stands right."""
    return "".join(char if char.isprintable() else " " for char in text)


def _count(files: int, findings: Sequence[Finding]) -> str:
    checked = f"{files} file{'' if files == 1 else 's'} checked"
    if not findings:
        return f"{checked}: no findings"
    counts = {name: sum(finding.severity == name for finding in findings) for name in ("error", "warning", "info")}
    parts = [f"{n} {name}{'' if n == 1 or name == 'info' else 's'}" for name, n in counts.items() if n]
    return f"{checked}: {', '.join(parts)}"
