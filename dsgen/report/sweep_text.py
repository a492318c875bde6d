"""A sweep as text: a table of the variants, then bars of what changes most."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dsgen.planner.refusal import plan_name
from dsgen.planner.sweep import Row
from dsgen.planner.values import Candidate
from dsgen.report.plan_time import seconds_words
from dsgen.report.training_run import Ask, cost_words, hours_words, training_run
from dsgen.units import format_bytes

if TYPE_CHECKING:  # rich is imported by whoever makes the console
    from rich.console import Console

_BAR = 40
"""Characters of the longest bar."""


def print_sweep(rows: Sequence[Row], ask: Ask, console: "Console") -> None:
    """Table, chart, and why some rows have no plan."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for title, justify in _columns(rows, ask):
        table.add_column(title, justify="right" if justify else "left")
    for row in rows:
        table.add_row(*_cells(row, ask))
    console.print(table)
    for line in _chart(rows):
        console.print(line, markup=False, highlight=False, soft_wrap=not console.is_terminal)
    refused = [row for row in rows if row.refusal is not None]
    if refused:
        console.print()
        console.print("Refused", style="bold")
    for row in refused:
        words = f"  - {name_of(row)}: {row.refusal}"
        console.print(words, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def name_of(row: Row) -> str:
    """Its values: ``gpus 16, gpu h100``."""
    return ", ".join(f"{key} {value}" for key, value in row.values.items())


def _columns(rows: Sequence[Row], ask: Ask) -> Iterator[tuple[str, bool]]:
    yield from ((key, True) for key in rows[0].values)
    yield "plan", False
    for title in ("memory", "step", "tokens/s a GPU", "tokens/s", "MFU"):
        yield title, True
    if ask.tokens is not None:
        yield "time", True
        if ask.price is not None:
            yield "cost", True


def _cells(row: Row, ask: Ask) -> Iterator[str]:
    yield from row.values.values()
    if row.job is None:
        yield "none fits" if row.closest else "refused"
        return
    chosen = row.job.decision.chosen
    yield _name(row, chosen)
    yield f"{format_bytes(chosen.ledger.device.high)}{' tight' if chosen.fit.tight else ''}"
    yield seconds_words(chosen.time.seconds)
    yield f"{chosen.speed:,.0f}"
    yield f"{chosen.speed * chosen.plan.world_size:,.0f}"
    yield "-" if chosen.time.mfu is None else f"{chosen.time.mfu * 100:.0f} %"
    run = training_run(chosen, ask)
    if run.hours is not None:
        yield hours_words(run.hours)
    if run.cost is not None:
        yield cost_words(run.cost)


def _name(row: Row, chosen: Candidate) -> str:
    assert row.job is not None
    name = plan_name(chosen.plan, row.job.target.format)
    return f"{name}, {row.job.sequence_length} tokens" if row.job.training.longest else name


def _chart(rows: Sequence[Row]) -> Iterator[str]:
    """Tokens per second of all GPUs and of one: the longest bar is the largest of its kind. Where the number of GPUs
    changes, also how much of the first row's speed each GPU keeps."""
    fitting = [(row, row.job.decision.chosen) for row in rows if row.job is not None]
    if len(fitting) < 2:
        return
    widest = max(len(name_of(row)) for row, _ in fitting)
    gpus = {chosen.plan.world_size for _, chosen in fitting}
    first = fitting[0][1].speed
    all_gpus = max(chosen.speed * chosen.plan.world_size for _, chosen in fitting)
    yield ""
    yield "Tokens per second, all GPUs" if len(gpus) > 1 else "Tokens per second"
    for row, chosen in fitting:
        total = chosen.speed * chosen.plan.world_size
        bar = "#" * max(1, round(total / all_gpus * _BAR))
        kept = f"  {chosen.speed / first * 100:.0f} % of the first, a GPU" if len(gpus) > 1 else ""
        yield f"  {name_of(row):<{widest}}  {bar:<{_BAR}}  {total:,.0f}{kept}"
