"""The schedule that is written, run by DeepSpeed's own classes: what is said of its first steps is what they do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from console import environment
from deepspeed_rates import PEAK
from written_plans import config, written

from dsgen.spec.values import Optimizer, Scheduler, Training

WORKER = Path(__file__).with_name("deepspeed_rates.py")
SAID = "the first two optimizer steps run at rate 0"
WARMUPS = (0, 1, 2, 4, 10)
KINDS = ("constant", "linear", "cosine")


def training(kind: str, warmup: int) -> Training:
    optimizer = Optimizer(type="adamw", lr=PEAK)
    return Training(scheduler=Scheduler(type=kind, warmup_steps=warmup, total_steps=100), optimizer=optimizer)


# A constant rate without warm-up needs no section.
CASES = [(kind, warmup) for kind in KINDS for warmup in WARMUPS if (kind, warmup) != ("constant", 0)]


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], list[float]]:
    sections = [config(training=training(*case))["scheduler"] for case in CASES]
    ran = subprocess.run(
        [sys.executable, str(WORKER)],
        input=json.dumps(sections),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path_factory.mktemp("rates"),
        env=environment(DS_ACCELERATOR="cpu"),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return dict(zip(CASES, json.loads(ran.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize(("kind", "warmup"), CASES)
def test_two_steps_at_0_then_a_line_to_the_peak(
    kind: str, warmup: int, rates: dict[tuple[str, int], list[float]]
) -> None:
    """Step n, counted from 0, has (n - 1) / warm-up of the peak; DeepSpeed's shortest warm-up is 2 steps."""
    length = max(warmup, 2)
    expected = [0.0, *(PEAK * step / length for step in range(length))]
    assert rates[kind, warmup][: length + 1] == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "warmup"), CASES)
def test_it_is_said(kind: str, warmup: int) -> None:
    made = written(training=training(kind, warmup))
    (reason,) = [each for each in made.reasons if each.key == "scheduler.params.warmup_num_steps"]
    assert reason.why.endswith(SAID)
    told = [each.why for each in made.not_carried if each.key == "training.scheduler.warmup_steps"]
    assert [SAID in why for why in told] == ([True] if warmup < 2 else [])
