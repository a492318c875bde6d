"""Findings as SARIF 2.1.0 (OASIS standard), which code-scanning services read."""

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from dsgen import __version__
from dsgen.documents.document import Range
from dsgen.lint.finding import Finding, Fix
from dsgen.lint.rule import Rule, known_rules
from dsgen.report.lint_gitlab import fingerprint
from dsgen.report.lint_view import LintView
from dsgen.report.rule_page import rule_text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {"error": "error", "warning": "warning", "info": "note"}


def lint_sarif(view: LintView) -> str:
    """One run with the rules that found something, their pages as help."""
    codes = sorted({finding.code for finding in view.findings})
    rules = known_rules()
    run = {
        "tool": {"driver": {"name": "dsgen", "version": __version__, "rules": [_rule(rules[code]) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in view.findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "help": {"text": rule_text(rule), "markdown": rule_text(rule)},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    text = finding.message + (f"\n{finding.help}" if finding.help else "")
    result = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.file, finding.range)],
        "partialFingerprints": {"dsgen/v1": fingerprint(finding)},
    }
    if finding.related:
        result["relatedLocations"] = [
            {**_location(related.file or finding.file, related.range), "message": {"text": related.message}}
            for related in finding.related
        ]
    if finding.fix and finding.fix.edits:
        result["fixes"] = [_fix(finding.file, finding.fix)]
    return result


def _artifact(file: str) -> dict[str, str]:
    # A URI reference; relative ones are relative to where the command ran, which services take for the repository.
    path = PurePath(file)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="replace")}


def _location(file: str, place: Range) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(file), "region": _region(place)}}


def _region(place: Range) -> dict[str, int]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _fix(file: str, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.range), "insertedContent": {"text": edit.text}} for edit in fix.edits
    ]
    return {
        "description": {"text": fix.description},
        "artifactChanges": [{"artifactLocation": _artifact(file), "replacements": replacements}],
    }
