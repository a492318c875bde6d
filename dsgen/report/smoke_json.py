"""Smoke runs as JSON.

One object: ``version`` 1; ``deepspeed``, ``torch`` (versions, null if nothing was started); ``proves`` (what such a
run says and what not); ``runs``, one per input in the order given. Bytes and seconds are plain numbers, absent is null.

A run: ``config``; ``format`` ("deepspeed", "fsdp2"); ``outcome`` ("ran", "unequal", "failed", "killed", "timed out",
"refused"; exit 0 means that all ran, and that none is known to be unequal to a plain loop); ``model``
(``family``, ``parameters``: of the tiny model, trained ones); ``device`` ("cpu", "cuda"); ``processes``; ``zero_stage``
(as the engine reports it); ``partitioned_parameters`` (those that stage 3 keeps in shards); ``steps``, each with
``step`` (from 1), ``loss`` (mean over ranks and micro-steps), ``gradient_norm`` (before clipping; null where DeepSpeed
computes none), ``learning_rate`` and ``seconds``; ``losses`` (those of the steps); ``moved`` (distance that the weights
went, divided by their norm); ``seconds`` (model, engine and steps of the slowest rank, imports left out);
``peak_memory_per_rank`` (resident on a CPU, allocated on a GPU); ``peak_reserved_per_rank`` (GPU only, else null);
``equal`` (null: the run did not get so far; else ``verdict``: true, false, or null with the ``reason`` why it was not
compared; ``checks``, each ``trial``, ``check``, ``ok``, ``difference`` (relative, null for counts), ``tolerance`` and
``text``; ``traits`` of the framework that were allowed for; ``changes`` for the comparison alone); ``script`` (null: no
folder with a launcher; else ``launcher``, ``ok``, ``losses``, ``seconds``, ``reason``, ``log``);
``changes``, each ``key``, ``from``, ``to`` (null: absent), ``why``; ``predicted`` (null: the ledger is for the real
model, this one is tiny); ``notes``; ``error`` (null, or ``reason``, ``rank``, ``phase``, ``step``, ``type``,
``traceback``, ``log``). What is not finite is a string ("nan", "inf").
"""

import math
from typing import Any

from dsgen.report.smoke_proof import equality_json, script_json
from dsgen.smoke.values import Failure, Report, Run

PROVES = (
    "A tiny model proves the mechanics (it loads and trains, ranks stay equal, its steps are a plain loop's where that "
    "was compared), not the memory: dsgen plan has the memory."
)


def smoke_json(report: Report) -> dict[str, Any]:
    """The object that ``dsgen smoke --format json`` prints."""
    machine = report.machine
    return {
        "version": 1,
        "deepspeed": machine.deepspeed if machine else None,
        "torch": machine.torch if machine else None,
        "proves": PROVES,
        "runs": [_run(run) for run in report.runs],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "config": run.config,
        "format": run.format,
        "outcome": run.outcome,
        "model": {"family": run.family, "parameters": run.parameters} if run.family else None,
        "device": run.device,
        "processes": run.processes,
        "zero_stage": run.zero_stage,
        "partitioned_parameters": run.partitioned,
        "steps": [
            {
                "step": step.step,
                "loss": _number(step.loss),
                "gradient_norm": _number(step.gradient_norm),
                "learning_rate": _number(step.learning_rate),
                "seconds": step.seconds,
            }
            for step in run.steps
        ],
        "losses": [_number(step.loss) for step in run.steps],
        "moved": _number(run.moved),
        "seconds": run.seconds,
        "peak_memory_per_rank": list(run.peak_memory_per_rank) or None,
        "peak_reserved_per_rank": list(run.peak_reserved_per_rank) or None,
        "changes": [
            {"key": change.key, "from": change.before, "to": change.after, "why": change.why} for change in run.changes
        ],
        "equal": equality_json(run.equal) if run.equal else None,
        "script": script_json(run.script) if run.script else None,
        "predicted": None,
        "notes": list(run.notes),
        "error": _error(run.error) if run.error else None,
    }


def _error(error: Failure) -> dict[str, Any]:
    return {
        "reason": error.reason,
        "rank": error.rank,
        "phase": error.phase,
        "step": error.step,
        "type": error.type,
        "traceback": list(error.traceback) or None,
        "log": error.log,
    }


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
