"""Findings one a line, for editors and for eyes that know the rules."""

from dsgen.report.lint_text import count
from dsgen.report.lint_view import LintView


def lint_concise(view: LintView) -> str:
    """``file:line:column: severity CODE message`` per finding, and a last line that counts them."""
    lines = [
        f"{finding.file}:{finding.range.line}:{finding.range.column}: "
        f"{finding.severity} {finding.code} {' '.join(finding.message.splitlines())}"
        for finding in view.findings
    ]
    return "\n".join([*lines, count(view)])
