"""Runs as text and JSON."""

import json

from dsgen.report.smoke_json import PROVES, smoke_json
from dsgen.report.smoke_text import smoke_text
from dsgen.smoke.change import Change
from dsgen.smoke.values import Failure, Machine, Report, Run, Step

MACHINE = Machine(
    device="cpu",
    devices=0,
    device_name=None,
    fp16=False,
    libaio=None,
    python="3.11",
    torch="2.13.0",
    deepspeed="0.19.8",
    libraries=(),
)
RAN = Run(
    config="a.json",
    outcome="ran",
    family="llama",
    device="cpu",
    processes=2,
    zero_stage=3,
    parameters=115_008,
    partitioned=114_688,
    steps=(
        Step(step=1, loss=5.5, gradient_norm=1.25, learning_rate=1e-3, seconds=0.5),
        Step(step=2, loss=float("nan"), gradient_norm=None, learning_rate=None, seconds=0.25),
    ),
    moved=0.045,
    seconds=1.5,
    peak_memory_per_rank=(400 << 20, 410 << 20),
    changes=(Change(key="fp16.enabled", before=True, after=False, why="no fp16 here"),),
    notes=("a note",),
)
FAILED = Run(
    config="b.json", outcome="failed", error=Failure(reason="rank 0, forward of step 1: KeyError: 'x'", log="/l/0.log")
)
REPORT = Report(machine=MACHINE, runs=(RAN, FAILED))


def test_json() -> None:
    report = json.loads(json.dumps(smoke_json(REPORT), allow_nan=False))
    assert report["version"] == 1
    assert (report["deepspeed"], report["torch"]) == ("0.19.8", "2.13.0")
    ran, failed = report["runs"]
    assert ran["losses"] == [5.5, "nan"]
    assert ran["steps"][0] == {
        "step": 1,
        "loss": 5.5,
        "gradient_norm": 1.25,
        "learning_rate": 1e-3,
        "seconds": 0.5,
    }
    assert ran["peak_memory_per_rank"] == [400 << 20, 410 << 20]
    assert ran["changes"] == [{"key": "fp16.enabled", "from": True, "to": False, "why": "no fp16 here"}]
    assert ran["error"] is None
    assert ran["predicted"] is None
    assert (failed["outcome"], failed["losses"], failed["peak_memory_per_rank"]) == ("failed", [], None)
    assert failed["error"]["reason"] == "rank 0, forward of step 1: KeyError: 'x'"
    assert failed["error"]["log"] == "/l/0.log"


def test_every_run_has_the_same_keys() -> None:
    first, second = smoke_json(REPORT)["runs"]
    assert first.keys() == second.keys()


def test_text() -> None:
    text = smoke_text(REPORT)
    assert text.startswith("a.json: ran\n")
    assert "2 processes on cpu, ZeRO stage 3, llama decoder of 115K parameters, 1.5 s" in text
    assert "5.5000" in text
    assert "0.391 GiB, 0.400 GiB" in text
    assert "fp16.enabled: true -> false (no fp16 here)" in text
    assert "note: a note" in text
    assert "b.json: failed\n  rank 0, forward of step 1: KeyError: 'x'\n  full log: /l/0.log" in text
    assert PROVES in text
    assert "not the memory" in PROVES


def test_one_process_is_no_plural() -> None:
    run = Run(config="a.json", outcome="ran", family="llama", device="cuda", processes=1)
    assert "1 process on cuda" in smoke_text(Report(machine=MACHINE, runs=(run,)))
