"""The plan as text: on a terminal wrapped to its width, otherwise one fact a line, to be searched."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dsgen.memory.ledger import PARTS, Ledger
from dsgen.planner.refusal import plan_name, rank_words, slower_words, stage_name
from dsgen.planner.values import Candidate
from dsgen.report.plan_time import time_lines
from dsgen.report.plan_view import PlanView
from dsgen.report.refused import refused_lines
from dsgen.report.simulation import simulation_lines
from dsgen.report.training_run import NOTHING, Ask, run_words
from dsgen.units import GB, GIB, format_bytes, format_count

if TYPE_CHECKING:  # rich is imported by whoever makes the console
    from rich.console import Console
    from rich.table import Table


def print_plan(view: PlanView, console: "Console", ask: Ask = NOTHING) -> None:
    """Everything that a person needs to decide, the answer first."""
    _line(console, _subject(view))
    _line(console, _verdict(view), style="bold green" if view.shown.fit.fits else "bold red")
    _heading(console, "Plan")
    for name, value in _settings(view):
        _line(console, f"  {name:<16}{value}")
    _heading(console, "Memory of the fullest GPU, GiB")
    console.print(_ledger_table(view.shown.ledger))
    for line in _account_lines(view):
        _line(console, f"  {line}")
    if view.simulation is not None:
        _heading(console, "The same, simulated: tensors alone")
        for line in simulation_lines(view.simulation, view.shown.ledger.device):
            _line(console, f"  {line}")
    _heading(console, "Time of a step")
    for line in time_lines(view.shown.time):
        _line(console, f"  {line}")
    if ask.tokens is not None:
        _line(console, f"  {run_words(view.shown, ask)}")
    _section(console, "Why", view.reasons)
    _section(console, "Runners-up", (_runner_up(candidate, view) for candidate in view.alternatives))
    _section(console, "Refused", refused_lines(view.rejected, view.inputs.target.format))
    _section(console, "Notes", (*view.notes, *view.shown.ledger.notes))


def _subject(view: PlanView) -> str:
    hardware = view.inputs.hardware
    shapes = view.inputs.shapes
    cards = f"{hardware.gpus_per_node} x {hardware.gpu.name}"
    machines = f"{hardware.nodes} nodes of {cards}" if hardware.nodes > 1 else cards
    size = f"{format_count(shapes.parameters)} parameters"
    if shapes.trainable != shapes.parameters:
        size += f", {format_count(shapes.trainable)} trained"
    return f"{shapes.name} ({size}) on {machines}"


def _verdict(view: PlanView) -> str:
    shown = view.shown
    device = shown.ledger.device
    figures = (
        f"{format_bytes(device.peak)} expected, {format_bytes(device.low)} to {format_bytes(device.high)}, of "
        f"{format_bytes(view.inputs.hardware.memory_budget)} budget"
    )
    name = plan_name(shown.plan, view.inputs.target.format)
    if not shown.fit.fits:
        # Of one config that somebody has written there is no closest.
        return f"does not fit{'; closest is' if view.rejected else ':'} {name}: {figures}"
    return f"fits{', tightly' if shown.fit.tight else ''}: {name}: {figures}"


def _settings(view: PlanView) -> Iterable[tuple[str, str]]:
    plan, sequence_length = view.shown.plan, view.inputs.sequence_length
    tokens = format_count(plan.global_batch * sequence_length)
    if view.inputs.target.format == "fsdp2":
        yield "layout", stage_name(plan, "fsdp2")
    else:
        yield "ZeRO stage", str(plan.zero_stage)
    if splits := rank_words(plan):
        yield "ranks", ", ".join(splits)
    sums = f", gradients add up in {plan.gradient_precision}" if plan.sums_apart else ""
    yield "precision", f"{plan.precision}{sums}"
    yield "checkpointing", str(plan.checkpointing)
    yield "offload", f"optimizer {plan.offload_optimizer}, parameters {plan.offload_parameters}"
    yield "micro-batch", str(plan.micro_batch)
    yield "accumulation", str(plan.accumulation)
    yield "data parallel", str(plan.data_parallel)
    yield "global batch", f"{plan.global_batch} sequences of {sequence_length}: {tokens} tokens a step"


def _ledger_table(ledger: Ledger) -> "Table":
    from rich.table import Table

    moments = ledger.device.moments
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("part", no_wrap=True)
    for moment in moments:
        table.add_column(moment.name, justify="right")
    for part in PARTS:
        sizes = [moment.parts.get(part, 0) for moment in moments]
        if any(sizes):
            table.add_row(f"  {part}", *(_gib(size) for size in sizes))
    peak = ledger.device.peak
    table.add_row("  total", *(_gib(moment.total) for moment in moments), style="bold")
    table.add_row("", *("^ peak" if moment.total == peak else "" for moment in moments))
    return table


def _gib(size: float) -> str:
    return f"{size / GIB:.2f}" if size else "-"


def _account_lines(view: PlanView) -> Iterable[str]:
    ledger = view.shown.ledger
    device = ledger.device
    classic = ledger.states_classic
    yield (
        f"allocated {format_bytes(device.allocated)}, reserved {format_bytes(device.reserved)}, whole GPU "
        f"{format_bytes(device.whole_gpu)}; budget: {view.inputs.hardware.budget_reason}"
    )
    for name, places in (
        ("host memory a node", ledger.host_per_node),
        ("NVMe a node", ledger.nvme_per_node),
        ("one checkpoint on disk", ledger.disk),
    ):
        if any(places.values()):
            yield f"{name}: {_sum_of(places)}"
    yield (
        f"textbook states a GPU (2 + 2 + 12 bytes a parameter), GB: parameters {classic.parameters / GB:.2f}, "
        f"gradients {classic.gradients / GB:.2f}, optimizer {classic.optimizer / GB:.2f}, "
        f"in all {classic.total / GB:.2f}"
    )
    yield f"basis: {view.basis}"


def _sum_of(places: Mapping[str, int]) -> str:
    parts = ", ".join(f"{name.replace('_', ' ')} {format_bytes(size)}" for name, size in places.items() if size)
    return f"{format_bytes(sum(places.values()))} ({parts})"


def _runner_up(candidate: Candidate, view: PlanView) -> str:
    device = candidate.ledger.device
    name = plan_name(candidate.plan, view.inputs.target.format)
    memory = f"{format_bytes(device.peak)} expected, {format_bytes(device.high)} at most"
    return f"{name}: {slower_words(candidate, view.shown)}: {memory}{', tight' if candidate.fit.tight else ''}"


def _section(console: "Console", title: str, entries: Iterable[str]) -> None:
    lines = list(entries)
    if lines:
        _heading(console, title)
    for line in lines:
        _item(console, line)


def _heading(console: "Console", title: str) -> None:
    console.print()
    console.print(title, style="bold", markup=False, highlight=False)


def _line(console: "Console", text: str, style: str = "") -> None:
    # Off a terminal a line stays whole, however long: people search and cut it.
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def _item(console: "Console", text: str) -> None:
    if not console.is_terminal:
        _line(console, f"  - {text}")
        return
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(text), (0, 0, 0, 2)))
