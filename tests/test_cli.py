"""The command line itself: what it says before any command runs, and how it ends."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from console import ROOT, dsgen, environment

from dsgen import __version__
from dsgen.cli import COMMANDS


def test_alone_it_says_how_to_be_used(tmp_path: Path) -> None:
    ran = dsgen(cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("usage: dsgen ")


def test_version(tmp_path: Path) -> None:
    ran = dsgen("--version", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"dsgen {__version__}\n", "")


def test_help_lists_every_command(tmp_path: Path) -> None:
    ran = dsgen("--help", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    # argparse puts the summary of the longest name on the next line.
    assert re.findall(r"^    (\w+)(?: |$)", ran.stdout, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    ran = dsgen(command, "--help", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"usage: dsgen {command} ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("biuld", "spec.yaml"), "there is no command 'biuld'\n  help: did you mean build?"),
        (("smok",), "did you mean smoke"),
        (("xyzzy",), "there is no command 'xyzzy'\n  help: commands are init, plan, build, "),
        (("plan",), "the following arguments are required: "),
        (("plan", "spec.yaml", "--frmat", "json"), "unrecognized arguments: --frmat json"),
        (("--vers",), ""),
    ],
)
def test_a_wrong_word_exits_2_and_says_what_is_right(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ran = dsgen(*words, cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert said in ran.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    # "dsgen show models | true": the pipe is closed before anything is written.
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "dsgen", "show", "models"],
            cwd=tmp_path,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_output_survives_a_terminal_without_unicode(tmp_path: Path) -> None:
    env = environment(PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0", LC_ALL="C")
    spec = ROOT / "examples" / "llama-2-7b-8xa100" / "spec.yaml"
    for words in (("show", "models"), ("show", "gpus"), ("plan", str(spec))):
        ran = dsgen(*words, cwd=tmp_path, env=env)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout


def test_the_same_in_every_locale(tmp_path: Path) -> None:
    spec = ROOT / "examples" / "llama-2-7b-8xa100" / "spec.yaml"
    outputs = {dsgen("plan", spec, cwd=tmp_path, env=environment(LC_ALL=name)).stdout for name in ("C", "C.UTF-8")}
    assert len(outputs) == 1
