"""Folders as ``dsgen build SPEC -o DIR`` writes them start by their own launcher, and train as a plain loop does."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from rotation import rotated
from smoke_helpers import ROOT, Ran, dsgen

from dsgen.cli import main

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/spec.yaml"))
FORMATS = ("deepspeed", "fsdp2")
SPEC = "llama-3.1-8b-4xa10g"

# Format; file, text before, text after; outcome and what is said.
MISTAKES: dict[str, tuple[str, tuple[str, str, str], str, str]] = {
    "fsdp2-not-divided": (
        "fsdp2",
        ("train.py", "(loss * world / count)", "(loss * world * len(window) / count)"),
        "unequal",
        "the loss is not divided by the accumulation steps",
    ),
    "fsdp2-same-data": (
        "fsdp2",
        ("loader.py", "drop_last=True)", "drop_last=True, rank=0)"),
        "failed",
        "rank 1 trains on the same sequences as a rank before it in step 1",
    ),
    "deepspeed-divided-twice": (
        "deepspeed",
        ("train.py", "engine.backward(loss)", "engine.backward(loss / accumulation)"),
        "unequal",
        "the loss is divided by the accumulation steps twice",
    ),
    "deepspeed-same-data": (
        "deepspeed",
        ("data.py", "seed=seed, drop_last=True)", "seed=seed, drop_last=True, rank=0)"),
        "unequal",
        "there is no DistributedSampler, or every rank makes the same one",
    ),
}


def build(spec: str, to: str, folder: Path) -> bool:
    """Whether the spec is legal for the format."""
    code = main(["build", str(ROOT / "examples" / spec / "spec.yaml"), "--to", to, "-o", f"{folder}/"])
    assert code in (0, 1)  # 1: refused
    return code == 0


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A right folder of each format and some with a mistake, in one command."""
    place = tmp_path_factory.mktemp("folders")
    for format_name in FORMATS:
        assert build(SPEC, format_name, place / format_name)
    for name, (format_name, (file, before, after), _, _) in MISTAKES.items():
        shutil.copytree(place / format_name, place / name)
        text = (place / name / file).read_text("utf-8")
        assert before in text
        (place / name / file).write_text(text.replace(before, after), "utf-8")
    return dsgen(*FORMATS, *MISTAKES, "--steps", "2", "--timeout", "200", "--format", "json", cwd=place)


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
    assert seen - {"data"} == {"first gradient norm", "losses", "weights", "collectives"}
    assert all(check["ok"] and check["text"] for check in run["equal"]["checks"])
    assert run["equal"]["changes"]
    script = run["script"]
    assert (script["launcher"], script["ok"]) == ("launch/torchrun.sh", True)
    assert len(script["losses"]) == 2


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_exit_1_and_has_a_name(ran: Ran, runs: dict[str, dict[str, Any]], name: str) -> None:
    run, (_, _, outcome, words) = runs[name], MISTAKES[name]
    assert ran.code == 1
    assert run["outcome"] == outcome
    assert words in run["error"]["reason"]
    if outcome == "unequal":
        assert run["equal"]["verdict"] is False
        assert run["error"]["reason"].startswith("not equal to a plain loop: configured optimizer, fp32: ")


def proven(place: Path, spec: str, to: str) -> None:
    if not build(spec, to, place / "built"):
        return  # its refusal has tests of its own
    ran = dsgen("built", "--timeout", "200", "--format", "json", cwd=place)
    run = ran.json["runs"][0]
    assert ran.code == 0, run["error"]
    assert run["equal"]["verdict"] is True, run["equal"]["reason"]
    assert {"configured optimizer, fp32", "clipped SGD, fp32"} <= {c["trial"] for c in run["equal"]["checks"]}
    assert run["script"]["ok"] is True, run["script"]["reason"]


def test_an_example_is_equal(tmp_path: Path) -> None:
    """One that rotates with the commit."""
    ((spec, to),) = rotated([(spec, to) for spec in EXAMPLES for to in FORMATS], 1)
    proven(tmp_path, spec, to)


@pytest.mark.full
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("spec", EXAMPLES)
def test_every_example_is_equal(tmp_path: Path, spec: str, to: str) -> None:
    proven(tmp_path, spec, to)
