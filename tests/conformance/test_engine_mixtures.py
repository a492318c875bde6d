"""Mixtures of what only the engine checks: what the linter calls an error raises, and what raises is an error."""

import csv
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from console import ROOT
from deepspeed_configs import lint
from engine_configs import engine_config
from one_rank import one_rank

from dsgen.facts.versions import libraries
from dsgen.lint.target import make_target
from dsgen.smoke.ops import prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.values import Options

LIST = Path(__file__).with_name("engine_disagreements.csv")
TARGET = make_target(libraries()["deepspeed"].executed, "deepspeed", world_size=1)
OPS = ["deepspeed_shm_comm", "fused_adam", "cpu_adam", "cpu_adagrad"]
EVERYDAY, FULL, CHUNK = 20, 300, 60

# What the machine lacks a file does not tell.
_MACHINE = ("not been implemented on CPU", "not supported on your device", "libaio", "async_io", "No module named")


@pytest.fixture(scope="module")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = Options(device="cpu")
    folder = tmp_path_factory.mktemp("mixtures")
    return prepare(OPS, probe(options, False, False, folder), options, folder, print)


def verdicts(configs: list[dict[str, Any]], extensions: Path) -> list[str | None]:
    said: list[str | None] = one_rank("deepspeed_engine.py", configs, extensions, 900)
    return said


def disagreements(first: int, count: int, extensions: Path) -> tuple[list[str], int]:
    """Configs on which engine and linter differ for no listed reason, and how many were judged."""
    with open(LIST, encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    configs = [engine_config(number) for number in range(first, first + count)]
    found, judged = [], 0
    for number, (config, said) in enumerate(zip(configs, verdicts(configs, extensions), strict=True), first):
        if said and any(word in said for word in _MACHINE):
            continue
        judged += 1
        errors = [f"{one.code} {one.message}" for one in lint(config, TARGET) if one.severity == "error"]
        if bool(errors) == bool(said):
            continue
        side, words = ("missed", str(said)) if said else ("false", "; ".join(errors))
        if not any(row["side"] == side and row["words"] in f"{words}$" for row in rows):
            found.append(f"{side} {number}: {' '.join(words.split())[:200]}: {json.dumps(config)}")
    return found, judged


def test_a_few_that_change_with_the_commit(extensions: Path) -> None:
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=30, check=False
    )
    turn = int(head.stdout[:8], 16) if head.returncode == 0 else int(time.time()) // 86400
    found, judged = disagreements(FULL + turn, EVERYDAY, extensions)
    assert judged >= EVERYDAY // 2
    assert found == []


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, FULL, CHUNK))
def test_three_hundred(first: int, extensions: Path) -> None:
    found, judged = disagreements(first, CHUNK, extensions)
    assert judged >= CHUNK // 2
    assert found == []
