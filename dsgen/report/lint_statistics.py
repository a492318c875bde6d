"""How often each rule found something."""

import json
from collections import Counter

from dsgen.report.lint_text import count
from dsgen.report.lint_view import LintView


def statistics_text(view: LintView) -> str:
    """A line per rule, the most frequent first; ``[*]`` where ``--fix`` cures some."""
    rows = _rows(view)
    width = max((len(str(row["count"])) for row in rows), default=0)
    lines = [
        f"{row['count']:>{width}}  {row['code']}  {'[*]' if row['fixable'] else '   '}  {row['rule']}" for row in rows
    ]
    return "\n".join([*lines, count(view)])


def statistics_json(view: LintView) -> str:
    """``{"version": 1, "files", "statistics": [{"code", "rule", "count", "fixable"}]}``; fixable: by a safe fix."""
    return json.dumps({"version": 1, "files": len(view.files), "statistics": _rows(view)}, indent=2)


def _rows(view: LintView) -> list[dict[str, str | int]]:
    counts = Counter((finding.code, finding.rule) for finding in view.findings)
    fixable = Counter(finding.code for finding in view.findings if finding.fix and finding.fix.safe)
    return [
        {"code": code, "rule": rule, "count": number, "fixable": fixable[code]}
        for (code, rule), number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
