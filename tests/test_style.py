"""The checks of style and types are tests too, so that one command says whether a change is ready."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHECKS = {
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy",),
}


@pytest.mark.parametrize("command", CHECKS.values(), ids=CHECKS.keys())
def test_style(command: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_two_test_modules_have_one_name() -> None:
    """pytest imports them all by their bare names: of two alike one is not collected, or a helper is another's."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if "sets" not in path.parts]
    twice = {name for name in names if names.count(name) > 1} - {"conftest.py", "__init__.py"}
    assert twice == set()
