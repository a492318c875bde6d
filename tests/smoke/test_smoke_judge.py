"""Verdicts over what ranks have written, also for ends that can't be staged."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from smoke_helpers import CPU, case, config

from dsgen.processes.events import EventFile
from dsgen.smoke.adapt import Adapted
from dsgen.smoke.group import Ended
from dsgen.smoke.judge import verdict, why_it_ended
from dsgen.smoke.values import Run

ENGINE = {"event": "engine", "zero_stage": 1, "partitioned": 0}
PHASE = {"event": "phase", "phase": "backward", "step": 2}


def step(number: int, loss: float | str = 5.0, rate: float | None = 1e-3) -> dict[str, Any]:
    return {
        "event": "step",
        "step": number,
        "loss": loss,
        "gradient_norm": 1.0,
        "learning_rate": rate,
        "seconds": 0.1,
    }


def done(**more: Any) -> dict[str, Any]:
    usual = {
        "event": "done",
        "seconds": 1.0,
        "parameters": 100,
        "skipped_steps": 0,
        "moved": 0.01,
        "weights_sum": 3.0,
        "master_weights": True,
        "peak_memory": 1000,
    }
    return {**usual, **more}


def error(kind: str, message: str, time: float) -> dict[str, Any]:
    return {
        "event": "error",
        "phase": "deepspeed.initialize",
        "step": None,
        "type": kind,
        "message": message,
        "source": "engine.py:3: assert a == b",
        "traceback": ["..."],
        "time": time,
    }


def ended(
    folder: Path, *ranks: list[dict[str, Any]], codes: tuple[int | None, ...] = (0, 0), finished: int = 1
) -> Ended:
    files = []
    for rank, events in enumerate(ranks):
        path = folder / f"rank{rank}.jsonl"
        path.write_text("".join(json.dumps({"case": 0, "time": 0, **event}) + "\n" for event in events))
        files.append(EventFile(path))
        files[-1].read()
    logs = tuple(folder / f"rank{rank}.log" for rank in range(len(ranks)))
    return Ended(tuple(files), codes, finished, None in codes, logs)


def judged(end: Ended, **section: Any) -> Run:
    content = config(1, **section)
    return verdict(case(content), Adapted(config=content, optimizer=None, changes=()), CPU, end, 0, None)


def reason(run: Run) -> str:
    assert run.error is not None
    return run.error.reason


def test_a_good_run(tmp_path: Path) -> None:
    events = [ENGINE, step(1, 5.0), step(2, 4.5), done()]
    run = judged(ended(tmp_path, events, events))
    assert (run.outcome, run.error, run.notes) == ("ran", None, ())
    assert run.peak_memory_per_rank == (1000, 1000)
    assert [one.loss for one in run.steps] == [5.0, 4.5]


def test_a_loss_that_is_no_number(tmp_path: Path) -> None:
    events = [ENGINE, step(1), step(2, "nan"), done()]
    run = judged(ended(tmp_path, events, events))
    assert (run.outcome, reason(run)) == ("failed", "the loss is nan at step 2")


def test_weights_that_do_not_move(tmp_path: Path) -> None:
    events = [ENGINE, step(1, 5.0), step(2, 5.0), done(moved=0.0)]
    run = judged(ended(tmp_path, events, events))
    assert run.outcome == "failed"
    assert "no weight has moved" in reason(run)


@pytest.mark.parametrize(
    ("rate", "more"),
    [(0.0, {}), (1e-3, {"skipped_steps": 2}), (1e-9, {"master_weights": False})],
    ids=["warm-up", "overflow", "too little for bf16"],
)
def test_weights_that_may_stand_still(tmp_path: Path, rate: float, more: dict[str, Any]) -> None:
    events = [ENGINE, step(1, 5.0, rate), step(2, 5.0, rate), done(moved=0.0, **more)]
    run = judged(ended(tmp_path, events, events))
    assert run.outcome == "ran"
    assert run.notes


def test_ranks_that_drift_apart(tmp_path: Path) -> None:
    one, other = [ENGINE, step(1), done()], [ENGINE, step(1), done(weights_sum=3.1)]
    run = judged(ended(tmp_path, one, other))
    assert run.outcome == "failed"
    assert "different weights" in reason(run)
    assert judged(ended(tmp_path, one, other), tensor_parallel={"autotp_size": 2}).outcome == "ran"


def test_the_first_error_is_the_cause(tmp_path: Path) -> None:
    """The rank that failed takes its neighbour's collective with it a moment later."""
    end = ended(tmp_path, [error("RuntimeError", "Connection closed by peer", 2.0)], [error("KeyError", "'x'", 1.0)])
    outcome, failure = why_it_ended(end, 10, 0)
    assert failure is not None
    assert (outcome, failure.reason, failure.rank) == ("failed", "rank 1, deepspeed.initialize: KeyError: 'x'", 1)


def test_when_all_fail_alike_rank_0_speaks(tmp_path: Path) -> None:
    end = ended(tmp_path, [error("KeyError", "'x'", 2.0)], [error("KeyError", "'x'", 1.0)])
    _, failure = why_it_ended(end, 10, 0)
    assert failure is not None
    assert failure.rank == 0


def test_an_empty_message_names_the_line(tmp_path: Path) -> None:
    _, failure = why_it_ended(ended(tmp_path, [error("AssertionError", "", 1.0)], []), 10, 0)
    assert failure is not None
    assert failure.reason == (
        "rank 0, deepspeed.initialize: AssertionError: (no message) at engine.py:3: assert a == b"
    )


def test_pydantic_is_put_on_one_line(tmp_path: Path) -> None:
    message = "1 validation error for Zero\nstage\n  Input should be 0\n    For further information visit https://x"
    _, failure = why_it_ended(ended(tmp_path, [error("ValidationError", message, 1.0)], []), 10, 0)
    assert failure is not None
    assert failure.reason.endswith("ValidationError: 1 validation error for Zero: stage: Input should be 0")


@pytest.mark.parametrize(("oom_kills", "words"), [(0, "probably the kernel's out-of-memory"), (1, ", the kernel's")])
def test_killed_without_a_word(tmp_path: Path, oom_kills: int, words: str) -> None:
    end = ended(tmp_path, [PHASE], [PHASE], codes=(None, -signal.SIGKILL), finished=0)
    outcome, failure = why_it_ended(end, 10, oom_kills)
    assert outcome == "killed"
    assert failure is not None
    assert failure.reason.startswith("rank 1, backward of step 2: killed by SIGKILL")
    assert words in failure.reason


def test_a_crash_in_c_code(tmp_path: Path) -> None:
    outcome, failure = why_it_ended(ended(tmp_path, [PHASE], [PHASE], codes=(-11, None), finished=0), 10, 0)
    assert failure is not None
    assert (outcome, failure.reason) == ("killed", "rank 0, backward of step 2: killed by SIGSEGV")


def test_a_process_that_just_ends(tmp_path: Path) -> None:
    outcome, failure = why_it_ended(ended(tmp_path, [], [PHASE], codes=(3, None), finished=0), 10, 0)
    assert failure is not None
    assert (outcome, failure.reason) == ("failed", "rank 0, its start: the process ended with code 3 and said nothing")


def test_the_time_limit_names_where_each_rank_waits(tmp_path: Path) -> None:
    end = ended(tmp_path, [PHASE], [{**PHASE, "phase": "forward"}], codes=(None, None), finished=0)
    outcome, failure = why_it_ended(end, 120, 0)
    assert failure is not None
    assert outcome == "timed out"
    assert failure.reason == (
        "took longer than 120 seconds and was stopped: rank 0 in backward of step 2; rank 1 in forward of step 2"
    )
