"""What a plan says that it rests on."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from worlds import LLAMA_3_8B, hardware, plan, shapes_of

from dsgen.facts.measured import Measured, measured
from dsgen.memory import basis
from dsgen.memory.basis import basis_of
from dsgen.plan import Checkpointing, Plan
from dsgen.spec.values import Method, Training
from dsgen.target import Target

ROOT = Path(__file__).resolve().parents[2]
SHARED = os.environ.get("DSGEN_SHARED")

RUN = Measured(
    row_id="a",
    source="here",
    model="Llama-3-8B",
    parameters=8.03e9,
    method="full",
    format="deepspeed",
    stage=3,
    checkpointing="full",
    offload="none",
    gpu="a100-80gb-sxm",
    gpus=8,
    shards=8,
    tokens=4096,
    statistic="allocated",
    gib=40.0,
    error=0.021,
)


def said(decided: Plan, training: Training | None = None, target: Target | None = None) -> str:
    training = training or Training(sequence_length=4096)
    return basis_of(decided, shapes_of(LLAMA_3_8B, training), training, hardware(), target or Target())


def table(monkeypatch: pytest.MonkeyPatch, *runs: Measured) -> None:
    monkeypatch.setattr(basis, "measured", lambda: runs)


def test_one_run_of_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, RUN)
    assert said(plan()) == (
        "1 measured run of this kind (DeepSpeed, ZeRO-3, full training); nearest: Llama-3-8B, 8 x a100-80gb-sxm, "
        "full checkpointing (+2.1 %, here)"
    )


def test_the_nearest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    far = replace(RUN, row_id="b", model="small", parameters=1e9, source="far", error=-0.2)
    other = replace(RUN, row_id="c", checkpointing="none", source="other", error=0.1)
    table(monkeypatch, far, other, RUN)
    found = said(plan())
    assert found.startswith("3 measured runs of this kind (DeepSpeed, ZeRO-3, full training), 10.0 % off in the middle")
    assert found.index("(+2.1 %, here)") < found.index("(+10.0 %, other)")
    assert "far" not in found
    assert said(plan(checkpointing=Checkpointing("none"))).index("other") < said(plan()).index("here") + 200


def test_none_of_the_kind_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, RUN)
    one = said(plan(zero_stage=1))
    assert one.startswith("no measured run of this kind (DeepSpeed, ZeRO-1, full training), formulas only; nearest: ")
    assert "ZeRO-3, full training" in one
    lora = said(plan(), Training(method=Method(type="lora")))
    assert lora.startswith("no measured run of this kind (DeepSpeed, ZeRO-3, LoRA)")
    assert said(plan(), target=Target(format="fsdp2")) == (
        "no measured run of this kind (FSDP2, ZeRO-3, full training), nor of its framework: formulas only"
    )


def test_the_table_names_its_sources_and_measured_its_errors() -> None:
    runs = measured()
    assert len(runs) > 200
    assert len({run.row_id for run in runs}) == len(runs)
    assert all(run.source and run.gib > 0 and -1 < run.error < 2 for run in runs)
    assert {run.format for run in runs} == {"deepspeed", "fsdp2", "fsdp1", "ddp", "megatron"}


def test_it_takes_less_than_20_ms_from_cold() -> None:
    """Reading the table and finding the nearest, beside what a plan imports anyway; the least of five processes."""
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/memory']\n"
        "from worlds import *\nfrom time import process_time as now\n"
        "training = Training(); shapes = shapes_of(LLAMA_3_8B, training); args = (plan(), shapes, training)\n"
        "at = now()\nfrom dsgen.memory.basis import basis_of\nbasis_of(*args, hardware(), Target())\nprint(now() - at)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    assert min(runs) < 0.02, runs


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED does not name a folder with measurements/measured.csv")
def test_the_table_is_made_from_the_measurements() -> None:
    """python tests/score/make_measured.py RUNS.csv makes it anew where a formula has changed."""
    sys.path.insert(0, str(ROOT / "tests" / "score"))
    try:
        from make_measured import made
    finally:
        sys.path.pop(0)
    rows = {row["row_id"]: row for row in made(str(Path(SHARED or "") / "measurements" / "measured.csv"))}
    kept = {run.row_id: run for run in measured()}
    assert rows.keys() == kept.keys()
    for name, row in rows.items():
        assert float(row["error"]) == pytest.approx(kept[name].error, abs=0.002), name
