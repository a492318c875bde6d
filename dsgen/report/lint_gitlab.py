"""Findings as GitLab's Code Quality report (docs.gitlab.com/ci/testing/code_quality, "report format")."""

import json
from collections import Counter
from hashlib import sha256
from pathlib import PurePath

from dsgen.lint.finding import Finding
from dsgen.report.lint_view import LintView

_SEVERITY = {"error": "major", "warning": "minor", "info": "info"}


def lint_gitlab(view: LintView) -> str:
    """A JSON array; each fingerprint is the same from run to run and unlike every other."""
    seen: Counter[str] = Counter()
    entries = []
    for finding in view.findings:
        print_ = fingerprint(finding)
        seen[print_] += 1
        entries.append(
            {
                "description": finding.message,
                "check_name": f"{finding.code} {finding.rule}",
                "fingerprint": print_ if seen[print_] == 1 else _hash(print_, str(seen[print_])),
                "severity": _SEVERITY[finding.severity],
                "location": {
                    # Relative to the repository and without "./", or the site does not find the file.
                    "path": PurePath(finding.file).as_posix(),
                    "lines": {"begin": finding.range.line, "end": finding.range.end_line},
                },
            }
        )
    return json.dumps(entries, indent=2)


def fingerprint(finding: Finding) -> str:
    """What stays the same of a finding when other lines of its file change."""
    path = "" if finding.path is None else json.dumps(finding.path)
    return _hash(PurePath(finding.file).as_posix(), finding.code, path, "" if path else finding.message)


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
