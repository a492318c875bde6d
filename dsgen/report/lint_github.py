"""Findings as GitHub Actions workflow commands, which the site shows beside the changed lines."""

from dsgen.lint.finding import Finding
from dsgen.report.lint_view import LintView

_LEVEL = {"error": "error", "warning": "warning", "info": "notice"}


def lint_github(view: LintView) -> str:
    """One ``::error file=...::message`` line per finding."""
    return "\n".join(_command(finding) for finding in view.findings)


def _command(finding: Finding) -> str:
    line, column, end_line, end_column = finding.range
    properties = {
        "file": finding.file,
        "line": str(line),
        "endLine": str(end_line),
        "title": f"{finding.code} {finding.rule}",
    }
    if end_line == line:  # the site takes columns only within one line, the end inclusive
        properties |= {"col": str(column), "endColumn": str(max(column, end_column - 1))}
    text = finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
    shown = ",".join(f"{name}={_escape(value, ':,')}" for name, value in properties.items())
    return f"::{_LEVEL[finding.severity]} {shown}::{_escape(text)}"


def _escape(text: str, more: str = "") -> str:
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text
