"""Findings as JUnit XML, which most CI servers show: a test suite per file, a failed case per finding."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from dsgen.lint.finding import Finding
from dsgen.report.lint_view import LintView

# XML 1.0 has no way to write these, not even as a reference (section 2.2, Char).
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def lint_junit(view: LintView) -> str:
    """One document; a file without findings is a case that passed."""
    by_file: dict[str, list[Finding]] = {name: [] for name in view.files}
    for finding in view.findings:
        by_file.setdefault(finding.file, []).append(finding)
    suites = [line for name, findings in by_file.items() for line in _suite(name, findings)]
    tests = sum(max(1, len(findings)) for findings in by_file.values())
    head = f'<testsuites name="dsgen lint" tests="{tests}" failures="{len(view.findings)}" errors="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"])


def _suite(name: str, findings: list[Finding]) -> Iterator[str]:
    tests = max(1, len(findings))
    yield f'  <testsuite name={_quoted(name)} tests="{tests}" failures="{len(findings)}" errors="0">'
    if not findings:
        yield f'    <testcase classname={_quoted(name)} name="dsgen lint"/>'
    for finding in findings:
        line, column = finding.range[:2]
        case = f"{finding.code} {finding.rule} {line}:{column}"
        yield f"    <testcase classname={_quoted(name)} name={_quoted(case)}>"
        help = f"\nhelp: {finding.help}" if finding.help else ""
        text = escape(_writable(f"{name}:{line}:{column}: {finding.message}{help}"))
        yield f"      <failure type={_quoted(finding.severity)} message={_quoted(finding.message)}>{text}</failure>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _quoted(text: str) -> str:
    return quoteattr(_writable(text))


def _writable(text: str) -> str:
    return _NOT_IN_XML.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
