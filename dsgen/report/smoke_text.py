"""Smoke runs as text for a terminal."""

import json
from collections.abc import Iterator
from typing import Any

from dsgen.report.smoke_json import PROVES
from dsgen.report.smoke_proof import equality_text, script_text
from dsgen.smoke.change import Change
from dsgen.smoke.values import Failure, Machine, Report, Run, Step
from dsgen.units import format_bytes, format_count


def smoke_text(report: Report) -> str:
    """What ``dsgen smoke`` prints: one paragraph per run, and what such a run proves."""
    paragraphs = ["\n".join(_run(run)) for run in report.runs]
    machine = report.machine
    versions = f"{_libraries(machine)}. " if machine else ""
    return "\n\n".join([*paragraphs, versions + PROVES]) + "\n"


def _libraries(machine: Machine) -> str:
    deepspeed = f"DeepSpeed {machine.deepspeed}, " if machine.deepspeed else ""
    return f"{deepspeed}torch {machine.torch}"


def _run(run: Run) -> Iterator[str]:
    yield f"{run.config}: {run.outcome}"
    if run.error:
        yield from _error(run.error)
    if run.device:
        yield f"  {_what(run)}"
    yield from _steps(run.steps)
    if run.moved is not None:
        yield f"  the weights moved by {run.moved:.2g} of their norm"
    if run.peak_memory_per_rank:
        kind = "allocated" if run.device == "cuda" else "resident, libraries included"
        yield f"  peak memory per rank: {_sizes(run.peak_memory_per_rank)} ({kind})"
    if run.peak_reserved_per_rank:
        yield f"  reserved by torch: {_sizes(run.peak_reserved_per_rank)}"
    if run.equal is not None:
        yield from equality_text(run.equal)
    if run.script is not None:
        yield script_text(run.script)
    if run.changes:
        yield "  changed for this machine and the tiny model:"
        for change in run.changes:
            yield f"    {_change(change)}"
    for note in run.notes:
        yield f"  note: {note}"


def _error(error: Failure) -> Iterator[str]:
    yield f"  {error.reason}"
    if error.log:
        yield f"  full log: {error.log}"


def _what(run: Run) -> str:
    parts = [f"{run.processes} process{'es' if run.processes != 1 else ''} on {run.device}"]
    if run.zero_stage is not None:
        parts.append(("FSDP2, " if run.format == "fsdp2" else "") + f"ZeRO stage {run.zero_stage}")
    parts.append(f"{run.family} decoder" + (f" of {format_count(run.parameters)} parameters" if run.parameters else ""))
    if run.seconds is not None:
        parts.append(f"{run.seconds:.1f} s")
    return ", ".join(parts)


def _steps(steps: tuple[Step, ...]) -> Iterator[str]:
    if not steps:
        return
    yield f"  {'step':>4}  {'loss':>9}  {'gradient norm':>13}  {'learning rate':>13}  {'seconds':>7}"
    for step in steps:
        norm, rate = _or_dash(step.gradient_norm, ".4f"), _or_dash(step.learning_rate, ".3g")
        yield f"  {step.step:>4}  {step.loss:>9.4f}  {norm:>13}  {rate:>13}  {step.seconds:>7.2f}"


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _sizes(sizes: tuple[int, ...]) -> str:
    return ", ".join(format_bytes(size) for size in sizes)


def _change(change: Change) -> str:
    return f"{change.key}: {_value(change.before)} -> {_value(change.after)} ({change.why})"


def _value(value: Any) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)
