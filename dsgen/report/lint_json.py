"""Findings as one JSON object: the contract that editors and scripts rely on."""

import json
from collections.abc import Sequence
from typing import Any

from dsgen.documents.document import Range
from dsgen.lint.finding import Edit, Finding, Fix


def lint_json(files: int, findings: Sequence[Finding]) -> str:
    """``{"version": 1, "files": n, "findings": [...]}``; lines and columns from 1 in code points, ends exclusive."""
    return json.dumps({"version": 1, "files": files, "findings": [_finding(finding) for finding in findings]}, indent=2)


def _place(place: Range) -> dict[str, int]:
    return {
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.file,
        **_place(finding.range),
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "help": finding.help,
        "path": None if finding.path is None else list(finding.path),
        "related": [{**_place(related.range), "message": related.message} for related in finding.related],
        "fix": finding.fix and _fix(finding.fix),
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"safe": fix.safe, "description": fix.description, "edits": [_edit(edit) for edit in fix.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_place(edit.range), "text": edit.text}
