"""Folders as ``dsgen build SPEC -o DIR`` writes them start by their own launcher, and train as a plain loop does."""

from pathlib import Path
from typing import Any

import pytest
from rotation import rotated
from smoke_helpers import ROOT, Ran, dsgen

from dsgen.cli import main

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/spec.yaml"))
FORMATS = ("deepspeed", "fsdp2")
SPEC = "llama-3.1-8b-4xa10g"


def build(spec: str, to: str, folder: Path) -> bool:
    """Whether the spec is legal for the format."""
    return main(["build", str(ROOT / "examples" / spec / "spec.yaml"), "--to", to, "-o", f"{folder}/"]) == 0


def edit(folder: Path, file: str, before: str, after: str) -> None:
    text = (folder / file).read_text("utf-8")
    assert before in text
    (folder / file).write_text(text.replace(before, after), "utf-8")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A right folder of each format and two with a mistake, in one command."""
    place = tmp_path_factory.mktemp("folders")
    for format_name in FORMATS:
        assert build(SPEC, format_name, place / format_name)
    for wrong in ("not-divided", "same-data"):
        assert build(SPEC, "fsdp2", place / wrong)
    edit(place / "not-divided", "train.py", "(loss * world / count)", "(loss * world * len(window) / count)")
    edit(place / "same-data", "loader.py", "drop_last=True)", "drop_last=True, rank=0)")
    names = [*FORMATS, "not-divided", "same-data"]
    return dsgen(*names, "--steps", "2", "--timeout", "200", "--format", "json", cwd=place)


@pytest.fixture(scope="module")
def runs(ran: Ran) -> dict[str, dict[str, Any]]:
    return {Path(run["config"]).parts[0]: run for run in ran.json["runs"]}


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_equal_and_starts(runs: dict[str, dict[str, Any]], name: str) -> None:
    run = runs[name]
    assert (run["format"], run["outcome"], run["error"]) == (name, "ran", None)
    assert run["zero_stage"] == 3
    assert run["equal"]["verdict"] is True
    trials = {check["trial"] for check in run["equal"]["checks"]}
    assert trials == {"configured optimizer, fp32", "clipped SGD, fp32", "configured optimizer, bf16"}
    seen = {check["check"] for check in run["equal"]["checks"]}
    assert seen == {"first gradient norm", "losses", "weights", "collectives"}
    assert all(check["ok"] and check["text"] for check in run["equal"]["checks"])
    assert run["equal"]["changes"]
    script = run["script"]
    assert (script["launcher"], script["ok"]) == ("launch/torchrun.sh", True)
    assert len(script["losses"]) == 2


def test_a_mistake_in_the_loop_is_exit_1_and_has_a_name(ran: Ran, runs: dict[str, dict[str, Any]]) -> None:
    run = runs["not-divided"]
    assert ran.code == 1
    assert run["outcome"] == "unequal"
    assert run["equal"]["verdict"] is False
    reason = run["error"]["reason"]
    assert "not equal to a plain loop" in reason
    assert "first gradient's norm" in reason
    assert "the loss is not divided by the accumulation steps" in reason
    assert run["script"] is None


def test_ranks_with_the_same_data(runs: dict[str, dict[str, Any]]) -> None:
    run = runs["same-data"]
    assert run["outcome"] == "failed"
    assert "rank 1 trains on the same sequences as a rank before it in step 1" in run["error"]["reason"]


def proven(place: Path, spec: str, to: str) -> None:
    if not build(spec, to, place / "built"):
        return  # its refusal has tests of its own
    ran = dsgen("built", "--timeout", "200", "--format", "json", cwd=place)
    run = ran.json["runs"][0]
    assert ran.code == 0, run["error"]
    assert run["equal"]["verdict"] is True, run["equal"]["reason"]
    assert run["script"]["ok"] is True, run["script"]["reason"]


@pytest.mark.parametrize(("spec", "to"), rotated([(spec, to) for spec in EXAMPLES for to in FORMATS], 1))
def test_an_example_is_equal(tmp_path: Path, spec: str, to: str) -> None:
    proven(tmp_path, spec, to)


@pytest.mark.full
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("spec", EXAMPLES)
def test_every_example_is_equal(tmp_path: Path, spec: str, to: str) -> None:
    proven(tmp_path, spec, to)
