"""``dsgen plan`` as people and scripts call it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from console import dsgen, environment

SPEC = """\
model: llama-2-7b
hardware: {gpu: a100-80gb-sxm, gpus_per_node: 8, host_memory: 1TiB}
training: {sequence_length: 4096, global_batch: 128, attention: flash}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def test_text(written: Path) -> None:
    ran = dsgen("plan", written.name, cwd=written.parent)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert "fits" in ran.stdout.splitlines()[1]
    assert "Refused" in ran.stdout


def test_json(written: Path) -> None:
    ran = dsgen("plan", written, "--format", "json", cwd=written.parent)
    assert ran.returncode == 0
    shown = json.loads(ran.stdout)
    assert (shown["version"], shown["fits"], shown["plan"]["global_batch"]) == (1, True, 128)


def test_same_bytes_twice(written: Path) -> None:
    for form in ("text", "json"):
        first, second = (
            dsgen("plan", written, "--format", form, cwd=written.parent, env=environment(PYTHONHASHSEED=seed))
            for seed in ("1", "2")
        )
        assert first.stdout == second.stdout


def test_nothing_fits_is_1_and_still_shows_the_closest(written: Path) -> None:
    written.write_text(SPEC + "want: {zero_stage: 0}\n", encoding="utf-8")
    ran = dsgen("plan", written, "--format", "json", cwd=written.parent)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["fits"] is False
    assert "leave want.zero_stage open" in ran.stderr
    ran = dsgen("plan", written, cwd=written.parent)
    assert ran.returncode == 1
    assert "does not fit" in ran.stdout


@pytest.mark.parametrize(
    ("more", "place", "words"),
    [
        ("want:\n  zero_stage: 2\n  offload_parameters: cpu\n", "spec.yaml:6:23:", "below ZeRO stage 3"),
        ("want:\n  checkpointing: none\n  micro_batch: 3\n", "spec.yaml:6:16:", "does not divide the 16 sequences"),
    ],
)
def test_illegal_wish_is_1_with_its_place(written: Path, more: str, place: str, words: str) -> None:
    written.write_text(SPEC + more, encoding="utf-8")
    ran = dsgen("plan", written.name, cwd=written.parent)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert f"dsgen: {place}" in ran.stderr
    assert words in ran.stderr


def test_batch_that_ranks_cannot_share(written: Path) -> None:
    written.write_text(SPEC.replace("global_batch: 128", "global_batch: 100"), encoding="utf-8")
    ran = dsgen("plan", written.name, cwd=written.parent)
    assert ran.returncode == 1
    assert "spec.yaml:3:49: a global batch of 100 can't be shared equally by 8" in ran.stderr
    assert "96 and 104" in ran.stderr


def test_missing_spec_is_2(tmp_path: Path) -> None:
    ran = dsgen("plan", "nowhere.yaml", cwd=tmp_path)
    assert ran.returncode == 2
    assert "nowhere.yaml" in ran.stderr


def test_json_needs_neither_rich_nor_templates(written: Path) -> None:
    """Cold start is a feature: what a command does not use, it does not load."""
    code = (
        "import sys; from dsgen.cli import main; main(sys.argv[1:]); "
        "print(sorted({'rich', 'jinja2', 'torch', 'hjson'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "plan", str(written), "--format", "json"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr.strip() == "[]"
