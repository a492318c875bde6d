"""Findings as one JSON object, or one a line: the contract that editors and scripts rely on."""

import json
from typing import Any

from dsgen.documents.document import Range
from dsgen.lint.finding import Edit, Finding, Fix, Related
from dsgen.report.lint_view import LintView


def lint_json(view: LintView) -> str:
    """``{"version": 1, "files": n, "findings": [...]}``; lines and columns from 1 in code points, ends exclusive.

    Where fixes were asked for, ``"fixed"`` says how many findings they cured.
    """
    fixed = {} if view.fixed is None else {"fixed": view.fixed}
    findings = [as_object(finding) for finding in view.findings]
    return json.dumps({"version": 1, "files": len(view.files), **fixed, "findings": findings}, indent=2)


def lint_jsonl(view: LintView) -> str:
    """One finding per line, each an object as in ``findings`` of the JSON form."""
    return "\n".join(json.dumps(as_object(finding)) for finding in view.findings)


def _place(place: Range) -> dict[str, int]:
    return {
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


def as_object(finding: Finding) -> dict[str, Any]:
    """A finding as the contract has it."""
    return {
        "file": finding.file,
        **_place(finding.range),
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "help": finding.help,
        "path": None if finding.path is None else list(finding.path),
        "related": [_related(related, finding.file) for related in finding.related],
        "fix": finding.fix and _fix(finding.fix),
    }


def _related(related: Related, file: str) -> dict[str, Any]:
    return {"file": related.file or file, **_place(related.range), "message": related.message}


def _fix(fix: Fix) -> dict[str, Any]:
    return {"safe": fix.safe, "description": fix.description, "edits": [_edit(edit) for edit in fix.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_place(edit.range), "text": edit.text}
