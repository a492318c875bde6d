"""Lints Python text as the command does."""

import os
from pathlib import Path

from dsgen.lint.finding import Finding
from dsgen.lint.kinds import KINDS
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import LintTarget, make_target

SHARED = os.environ.get("DSGEN_SHARED")
(PYTHON,) = (kind for kind in KINDS if kind.name == "python")


def lint(text: str | bytes, name: str = "train.py", target: LintTarget | None = None) -> list[Finding]:
    data = text.encode() if isinstance(text, str) else text
    return lint_bytes(name, data, PYTHON, target or make_target())


def lint_file(path: Path) -> list[Finding]:
    return lint(path.read_bytes(), str(path))
