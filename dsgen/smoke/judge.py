"""From what the ranks wrote to a verdict that a person understands."""

import math
import signal
from collections.abc import Sequence
from typing import Any

from dsgen.processes.events import Event
from dsgen.smoke.adapt import Adapted
from dsgen.smoke.group import Ended
from dsgen.smoke.values import Case, Failure, Machine, Outcome, Run, Step

_MOST_REASON = 500
_FLAT = 1e-4  # of the loss: less than the eye finds in four decimals


def verdict(case: Case, adapted: Adapted, machine: Machine, ended: Ended, index: int, failure: "Verdict | None") -> Run:
    """The run of the ``index``-th case of a group; ``failure`` if it is the one that the group ended in."""
    ranks = [_of(rank.events, index) for rank in ended.ranks]
    engine, done = _first(ranks, "engine"), [_last(events, "done") for events in ranks]
    finished = [event for event in done if event is not None] if all(done) else []
    steps = tuple(_step(event) for event in ranks[0] if event["event"] == "step")
    outcome, error = failure or _check(finished, steps, adapted)
    return Run(
        config=case.name,
        outcome=outcome,
        format=case.format,
        family=case.family,
        device=machine.device,
        processes=len(ended.ranks),
        zero_stage=engine["zero_stage"] if engine else None,
        partitioned=engine["partitioned"] if engine else None,
        parameters=finished[0]["parameters"] if finished else None,
        steps=steps,
        moved=float(finished[0]["moved"]) if finished else None,
        seconds=max(event["seconds"] for event in finished) if finished else None,
        peak_memory_per_rank=tuple(event["peak_memory"] for event in finished),
        peak_reserved_per_rank=tuple(event["peak_reserved"] for event in finished if "peak_reserved" in event),
        changes=adapted.changes,
        notes=(*case.notes, *_notes(finished, steps)),
        error=error,
    )


Verdict = tuple[Outcome, Failure | None]


def _check(finished: Sequence[Event], steps: Sequence[Step], adapted: Adapted) -> Verdict:
    """A run that reached its end can still have trained nothing."""
    for step in steps:
        if not math.isfinite(step.loss):
            return "failed", Failure(reason=f"the loss is {step.loss} at step {step.step}", step=step.step)
    first = finished[0]
    learns = any(step.learning_rate for step in steps) and first["skipped_steps"] < len(steps)
    if learns and first["master_weights"] and float(first["moved"]) == 0:
        return "failed", Failure(reason="no weight has moved, although the learning rate is not zero")
    shared = _same_data(finished)
    if shared:
        return "failed", shared
    sums = [float(event["weights_sum"]) for event in finished]
    if not _shards_the_model(adapted) and not all(math.isclose(total, sums[0], rel_tol=1e-6) for total in sums):
        return "failed", Failure(reason=f"the ranks end with different weights (their sums: {sums})")
    return "ran", None


def _same_data(finished: Sequence[Event]) -> Failure | None:
    """Ranks that draw the same sequences do the same work twice; a worker that runs the code's own loader tells."""
    for rank, event in enumerate(finished):
        for step, window in enumerate(event.get("windows", ())):
            if any(window == other["windows"][step] for other in finished[:rank]):
                return Failure(
                    reason=f"rank {rank} trains on the same sequences as a rank before it in step {step + 1}: "
                    "no DistributedSampler, or the same part of the data for every rank",
                    rank=rank,
                    step=step + 1,
                )
    return None


def _shards_the_model(adapted: Adapted) -> bool:
    """Tensor and expert parallelism give each rank weights of its own."""
    sections = (adapted.config.get("tensor_parallel"), adapted.config.get("expert_parallel"))
    return any(isinstance(section, dict) and section for section in sections)


def _notes(finished: Sequence[Event], steps: Sequence[Step]) -> list[str]:
    if not finished:
        return []
    notes = []
    skipped = finished[0]["skipped_steps"]
    if skipped:
        notes.append(f"{skipped} of {len(steps)} steps skipped for overflow: loss scaling still looks for its scale")
    elif len(steps) > 1 and math.isclose(steps[-1].loss, steps[0].loss, rel_tol=_FLAT):
        rates = ", ".join("unknown" if step.learning_rate is None else f"{step.learning_rate:.3g}" for step in steps)
        notes.append(f"the loss hardly moves in so few steps at these learning rates: {rates}")
    return notes


def why_it_ended(ended: Ended, timeout: float, oom_kills: int) -> Verdict:
    """The failure that a group ended in: an exception, a signal, or the time limit."""
    errors = [
        (rank, event) for rank, file in enumerate(ended.ranks) for event in file.events if event["event"] == "error"
    ]
    if errors:
        _, cause = min(errors, key=lambda error: error[1]["time"])
        # Often all ranks fail alike; the first to say so is then an accident, and rank 0 has the fuller log.
        rank, event = next((r, e) for r, e in errors if (e["type"], e["message"]) == (cause["type"], cause["message"]))
        return "failed", _exception(rank, event, str(ended.logs[rank]))
    for rank, code in enumerate(ended.exit_codes):
        if code not in (None, 0):
            return _sudden_end(ended, rank, int(code or 0), oom_kills)
    where = [_last(file.events, "phase") for file in ended.ranks]
    waiting = "; ".join(f"rank {rank} in {_place(event)}" for rank, event in enumerate(where))
    reason = f"took longer than {timeout:g} seconds and was stopped: {waiting}"
    return "timed out", Failure(reason=reason, log=str(ended.logs[0]))


def _exception(rank: int, event: Event, log: str) -> Failure:
    # pydantic ends each of its errors with a line that leads to its website, and has key and complaint on two lines.
    lines = [line.strip() for line in event["message"].splitlines() if "For further information" not in line]
    joint = ": " if event["type"] == "ValidationError" else " "
    message = joint.join(line for line in lines if line) or f"(no message) at {event['source']}"
    if len(message) > _MOST_REASON:
        message = message[:_MOST_REASON] + " ..."
    return Failure(
        reason=f"rank {rank}, {_place(event)}: {event['type']}: {message}",
        rank=rank,
        phase=event["phase"],
        step=event["step"],
        type=event["type"],
        traceback=tuple(event["traceback"]),
        log=log,
    )


def _sudden_end(ended: Ended, rank: int, code: int, oom_kills: int) -> Verdict:
    event, log = _last(ended.ranks[rank].events, "phase"), str(ended.logs[rank])
    place = _place(event)
    phase, step = (event["phase"], event["step"]) if event else (None, None)
    if code > 0:
        reason = f"rank {rank}, {place}: the process ended with code {code} and said nothing"
        return "failed", Failure(reason=reason, rank=rank, phase=phase, step=step, log=log)
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    reason = f"rank {rank}, {place}: killed by {name}"
    if -code == signal.SIGKILL:
        known = "the kernel's out-of-memory killer" if oom_kills else "probably the kernel's out-of-memory killer"
        reason += f", {known} (it is host memory that ran out)"
    return "killed", Failure(reason=reason, rank=rank, phase=phase, step=step, type=name, log=log)


def _place(event: Event | None) -> str:
    if event is None:
        return "its start"
    return f"{event['phase']} of step {event['step']}" if event["step"] else str(event["phase"])


def _step(event: Event) -> Step:
    return Step(
        step=event["step"],
        loss=float(event["loss"]),
        gradient_norm=None if event["gradient_norm"] is None else float(event["gradient_norm"]),
        learning_rate=None if event["learning_rate"] is None else float(event["learning_rate"]),
        seconds=event["seconds"],
    )


def _of(events: Sequence[Event], case: int) -> list[Event]:
    return [event for event in events if event["case"] == case]


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event["event"] == kind), None)


def _first(ranks: Sequence[Sequence[Event]], kind: str) -> dict[str, Any] | None:
    return next((event for events in ranks for event in events if event["event"] == kind), None)
