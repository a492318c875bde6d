"""``dsgen plan --pin`` as people call it."""

import json
import stat
from pathlib import Path

import pytest
from console import dsgen

SPEC = """\
# our run
model: llama-2-7b
hardware: {gpu: a100-80gb-sxm, gpus_per_node: 8, host_memory: 1TiB}
training: {sequence_length: 4096, global_batch: 128, attention: flash}  # as in the paper
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_bytes(SPEC.encode())
    return path


def plan(path: Path, *flags: str) -> dict[str, object]:
    ran = dsgen("plan", path.name, "--format", "json", *flags, cwd=path.parent)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout)["plan"])


def test_the_file_says_the_plan_from_now_on(written: Path) -> None:
    before = plan(written)
    assert plan(written, "--pin") == before
    text = written.read_text("utf-8")
    assert text.startswith(SPEC.replace("attention: flash}", "attention: flash, precision: bf16}"))
    assert f"\nwant:\n  zero_stage: {before['zero_stage']}\n" in text
    assert plan(written) == before


def test_twice_changes_nothing(written: Path) -> None:
    plan(written, "--pin")
    first = written.read_bytes()
    ran = dsgen("plan", written.name, "--pin", cwd=written.parent)
    assert ran.returncode == 0
    assert "holds this plan already" in ran.stderr
    assert written.read_bytes() == first


def test_mode_links_and_byte_order_mark_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + SPEC.encode())
    real.chmod(0o640)
    link.symlink_to(real)
    plan(link, "--pin")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_bytes().startswith(b"\xef\xbb\xbf# our run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "real.yaml"]


def test_where_nothing_fits_nothing_is_pinned(written: Path) -> None:
    text = SPEC + "want: {zero_stage: 0}\n"
    written.write_text(text, "utf-8")
    ran = dsgen("plan", written.name, "--pin", cwd=written.parent)
    assert ran.returncode == 1
    assert written.read_text("utf-8") == text


def test_standard_input_and_sweeps_cannot_be_pinned(written: Path) -> None:
    ran = dsgen("plan", "-", "--pin", cwd=written.parent, stdin=SPEC)
    assert ran.returncode == 2
    assert "standard input" in ran.stderr
    ran = dsgen("plan", written.name, "--pin", "--sweep", "gpus=8", cwd=written.parent)
    assert ran.returncode == 2
    assert written.read_text("utf-8") == SPEC
