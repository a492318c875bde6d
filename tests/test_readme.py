"""README.md tells the truth: its tour is run, and its two set-up commands are those of .ci/run."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from console import ROOT, environment

from dsgen.spec.read import spec_from_text

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command of the tour, and the lines that README shows of its output ("..." stands for any)."""

    command: str
    shown: tuple[str, ...]


def tour() -> list[Step]:
    steps = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            steps.append(Step(command, tuple(line for line in shown if line.strip() not in {"", "..."})))
    return steps


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder like a fresh checkout with ``dsgen`` on the path."""
    shutil.copytree(ROOT / "examples", tmp_path / "checkout" / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dsgen"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dsgen "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return tmp_path / "checkout"


def test_the_tour_runs_as_shown(checkout: Path) -> None:
    steps = tour()
    assert {step.command.split()[1] for step in steps} >= {"plan", "build", "smoke", "show"}
    env = environment()
    env["PATH"] = f"{checkout.parent / 'bin'}:{env['PATH']}"
    for step in steps:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.command],
            cwd=checkout,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, f"$ {step.command}\n{ran.stdout}"
        lines = iter(ran.stdout.splitlines())
        for shown in step.shown:
            # Each line in its turn: "in" consumes the iterator up to the match.
            assert shown.rstrip() in (line.rstrip() for line in lines), f"$ {step.command}\n{shown}\n--\n{ran.stdout}"


def test_the_spec_that_is_shown_is_read() -> None:
    (shown,) = [block for block in blocks("yaml") if block.startswith("model:")]
    spec = spec_from_text(shown, "README.md")
    assert (spec.hardware.gpus_per_node, spec.training.global_batch) == (8, 128)
    several = re.search(r"# several nodes: also (.*)", shown)
    assert several
    wide = spec_from_text(shown.replace("gpus_per_node: 8}", f"gpus_per_node: 8, {several[1]}}}"), "README.md")
    assert (wide.hardware.nodes, wide.hardware.interconnect.gbit_s) == (2, 100)


def test_set_up_commands_are_those_of_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    said = [block.strip().replace("\\\n", "").split(" && ") for block in blocks("bash")]
    assert len(said) == 2, "two commands set everything up"
    for commands, folder in zip(said, (".ci/core", ".ci/venv"), strict=True):
        for command in commands:
            # CI keeps its environments and outputs apart from yours, and prints less.
            words = " ".join(command.split()).replace("-o ds_config.json", "-o .ci/core/ds_config.json")
            assert words.replace(".venv", folder) in script.replace(" --quiet", "")


def test_every_file_that_is_named_exists() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text("utf-8")
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        code = " ".join(re.findall(r"`([^`]+)`", text) + blocks("bash"))
        named = re.findall(r"(?<![\w./-])(?:dsgen|schemas|templates|tests|examples)/[\w./*-]*", code)
        missing = [name for name in {*links, *named} if not list(ROOT.glob(name.rstrip("/.")))]
        assert missing == [], page
