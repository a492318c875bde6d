"""Runs dsgen as a person does: its own process, any folder, nothing on standard input."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with the checkout's dsgen on the path and no colours or widths of the caller."""
    kept = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE"}}
    return kept | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"} | changes


def dsgen(
    *arguments: str | Path, cwd: Path, timeout: float = 120, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """One dsgen command. Whatever it was asked, it owes people no traceback and one of three exit codes."""
    ran = subprocess.run(
        [sys.executable, "-m", "dsgen", *map(str, arguments)],
        cwd=cwd,
        env=environment() if env is None else dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    assert ran.returncode in {0, 1, 2}, ran
    return ran


def copy_sources(folder: Path) -> None:
    """Copies what git would hand out: the tracked files, and those not yet added but not ignored either."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode("utf-8").split("\0") if name]
    else:
        # An unpacked sdist has no history; it holds nothing else either.
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
