"""pytest alone is the everyday tier, ``pytest -m full`` the rest."""

import subprocess
import sys

from console import ROOT, environment


def collected(*arguments: str) -> set[str]:
    """Names of the tests of one file that has some of each tier."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/formats/test_generated_folder.py", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {line.partition("::")[2] for line in ran.stdout.splitlines() if "::" in line}


def test_what_is_marked_full_waits_for_its_mark() -> None:
    everyday, full = collected(), collected("-m", "full")
    assert "test_it_trains_and_resumes_where_it_was[2]" in everyday
    assert "test_it_trains_and_resumes_where_it_was[3]" in full
    assert not everyday & full
