"""Own process: lints hostile documents by number, and says what was slow, what crashed and how much memory it took.

    python tests/lint/hostile_lint.py START COUNT

A reader that dies (of a full stack, say) takes the process along, and the caller sees the exit code.
"""

import json
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostile_documents import Hostile, documents

from dsgen.errors import ProblemsError
from dsgen.lint.baseline import read_baseline
from dsgen.lint.check import Request, check
from dsgen.lint.files import Source
from dsgen.lint.kinds import KINDS, kind_of
from dsgen.lint.pins import deepspeed_of
from dsgen.lint.project import forget
from dsgen.lint.settings import settings_of
from dsgen.report.lint_json import lint_json
from dsgen.report.lint_sarif import lint_sarif
from dsgen.report.lint_text import lint_text
from dsgen.report.lint_view import LintView

SLOW, SLOW_TO_CURE = 1.0, 20.0
"""Seconds of processor time that no document may take: to lint, and to cure (each fix is tried and linted again)."""

_NAMES = {"json": "x.json", "hjson": "x.hjson", "yaml": "x.yaml", "accelerate": "x.yaml", "python": "x.py"}
_LOADERS = ("deepspeed", "transformers", "accelerate", "lightning", None)
_VERSIONS = ("0.14.0", "0.16.4", "0.17.1", "0.19.8", None)


def lint(document: Hostile, number: int, folder: Path, cure: bool = False) -> str:
    """Sends one document through its reader; the outcome in a word."""
    match document.entry:
        case "settings":
            return _refused_or(lambda: settings_of(_written(folder, "pyproject.toml", document.data)))
        case "baseline":
            return _refused_or(
                lambda: read_baseline(_written(folder, "baseline.json", document.data) / "baseline.json")
            )
        case "pins":
            name = ("requirements.txt", "uv.lock", "pyproject.toml", "environment.yml")[number % 4]
            return _refused_or(lambda: deepspeed_of(_written(folder, name, document.data)))
    name = _NAMES.get(document.entry, "x.json")
    kind = kind_of(name) or KINDS[0]
    loader = "transformers" if document.entry == "json" else _LOADERS[number % 5]
    flags: dict[str, Any] = {"deepspeed": _VERSIONS[number // 5 % 5], "loaded_by": loader}
    if number % 3 == 0:
        flags["world_size"] = 8
    request = Request(flags=flags, isolated=True)
    done = check(Source(name, document.data, kind), request)
    if cure:
        request = replace(request, fixes="all")
    view = LintView([name], done.findings, {name: done.text})
    assert json.loads(lint_json(view))["files"] == 1
    assert lint_text(view)
    if number % 8 == 0:
        assert json.loads(lint_sarif(view))["version"] == "2.1.0"
    kind.in_folders(document.data.decode(errors="replace"))
    return "findings" if done.findings else "clean"


def _written(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    forget()
    return folder


def _refused_or(read: Any) -> str:
    try:
        read()
    except ProblemsError:
        return "refused"
    return "read"


def main() -> None:
    start, count = map(int, sys.argv[1:3])
    outcomes: Counter[str] = Counter()
    crashed, slow, slowest = [], [], (0.0, 0, "")
    before = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()  # nothing above it is searched
        for number, document in enumerate(documents(start, count), start):
            if number == start + 1:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            begin = time.process_time()
            try:
                outcomes[f"{document.entry} {lint(document, number, folder)}"] += 1
            except Exception:
                crashed.append([number, document.entry, traceback.format_exc()[-1500:]])
            took = time.process_time() - begin
            slowest = max(slowest, (took, number, document.entry))
            try:
                if number % 4 == 0:
                    lint(document, number, folder, cure=True)
            except Exception:
                crashed.append([number, f"{document.entry}, cured", traceback.format_exc()[-1500:]])
            if took > SLOW or time.process_time() - begin > SLOW + SLOW_TO_CURE:
                slow.append([number, document.entry, took, time.process_time() - begin])
            for file in folder.iterdir():
                if file.is_file():
                    file.unlink()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    said = {"outcomes": outcomes, "crashed": crashed, "slow": slow, "slowest": slowest, "grown_mib": grown}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
