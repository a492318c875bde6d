"""How long a whole training takes, and what it costs."""

from dataclasses import dataclass
from typing import Any

from dsgen.planner.values import Candidate
from dsgen.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What ``--tokens`` and ``--price`` say."""

    tokens: int | None = None
    price: float | None = None
    """Of one GPU for one hour, in whatever money."""


NOTHING = Ask()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """What comes out of it."""

    hours: float | None
    cost: float | None


def training_run(candidate: Candidate, ask: Ask) -> TrainingRun:
    """hours = tokens / (tokens per second and GPU x GPUs) / 3600; cost = hours x GPUs x price."""
    if ask.tokens is None:
        return TrainingRun(hours=None, cost=None)
    gpus = candidate.plan.world_size
    hours = ask.tokens / (candidate.speed * gpus) / 3600
    return TrainingRun(hours=hours, cost=None if ask.price is None else hours * gpus * ask.price)


def run_fields(candidate: Candidate, ask: Ask) -> dict[str, Any]:
    """For JSON; null where it was not asked for."""
    run = training_run(candidate, ask)
    return {"tokens": ask.tokens, "hours": run.hours, "cost": run.cost}


def run_words(candidate: Candidate, ask: Ask) -> str:
    """One sentence."""
    run = training_run(candidate, ask)
    assert run.hours is not None, "asked only with --tokens"
    assert ask.tokens is not None
    gpus = candidate.plan.world_size
    cost = "" if run.cost is None else f", which cost {cost_words(run.cost)} at {ask.price:g} a GPU hour"
    return (
        f"{format_count(ask.tokens)} tokens take {hours_words(run.hours)} on {gpus} GPU{'s' if gpus > 1 else ''}: "
        f"{hours_words(run.hours * gpus)} of GPU time{cost}"
    )


def hours_words(hours: float) -> str:
    """Three digits: 45.0 min, 13.2 h, 12.5 days."""
    if hours < 1:
        return f"{hours * 60:.3g} min"
    return f"{hours:.3g} h" if hours < 1000 else f"{hours:,.0f} h"


def cost_words(cost: float) -> str:
    """Whole units where there are many."""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.2f}"
