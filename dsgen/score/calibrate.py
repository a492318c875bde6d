"""A team's own runs tune the named constants for its cluster.

Guarded against too much faith in few runs: a constant moves only where enough runs depend on it, near its default
unless they insist (dsgen/score/fit.py), and what is tuned is kept only where it also brings runs nearer to which it was
not fitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from dsgen.facts.constants import constant
from dsgen.facts.tunable import Kind, names_of, tunable
from dsgen.score.fit import Row, Slope, Trust, fitted_slopes, mean_error, resting, solve
from dsgen.score.memory_fit import memory_rows
from dsgen.score.runs import Run
from dsgen.score.throughput_fit import observations

LEAST_ROWS = 8
"""Figures of a kind below which none of its constants is tuned."""
LEAST_RESTING = 5
"""Figures that depend on a constant, below which it is kept."""
CLUSTER = Trust(freedom=log(2), noise=0.05, sources_alike=False)
"""From cluster to cluster constants differ by halves and doubles; a run of one cluster strays by some 5 %."""
_FOLDS = 5
_GAIN = 0.98
"""Error over the default's, of runs left out, above which nothing is gained."""
_STILL = 0.01
"""A constant that moves by less than this share has not moved."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """One constant."""

    value: float
    """Sizes in bytes."""
    rows: int
    """Figures that depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What the runs say of memory, or of step time."""

    rows: int
    """Figures that are measured and predicted."""
    before: float | None = None
    """Mean error with the defaults; None where there are no rows."""
    after: float | None = None
    """With the tuned constants; None where none is."""
    held_out: float | None = None
    """Of each fifth of the rows, with constants that the others tuned."""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    """Constants that stay as they are, with the reason."""


def calibrate(runs: Sequence[Run]) -> dict[Kind, Part]:
    """Both kinds, each by itself: memory does not depend on constants of time, nor the other way round."""
    memory = memory_rows(runs)
    return {
        "memory": part(memory, "memory", [row.prepared.run.row_id for row in memory]),
        "time": part(observations(runs), "time"),
    }


def part(rows: Sequence[Row], kind: Kind, together: Sequence[str] | None = None) -> Part:
    """One kind. ``together``: which rows are of one run, where a run has several."""
    names = names_of(kind)
    if not rows:
        return Part(rows=0, kept=dict.fromkeys(names, "no run can be both read and predicted"))
    before = mean_error(rows, {})
    if len(rows) < LEAST_ROWS:
        reason = f"{_count(len(rows), 'figure')}; fewer than {LEAST_ROWS} say too little"
        return Part(rows=len(rows), before=before, kept=dict.fromkeys(names, reason))
    every = fitted_slopes(rows, names, CLUSTER)
    kept = {}
    for position, name in enumerate(names):
        count = resting(every, position)
        if count < LEAST_RESTING:
            kept[name] = f"{_count(count, 'figure')} depend on it; fewer than {LEAST_RESTING} say too little"
    moving = tuple(name for name in names if name not in kept)
    if not moving:
        return Part(rows=len(rows), before=before, kept=kept)
    positions = [names.index(name) for name in moving]
    by = [Slope(slope.at, tuple(slope.by[position] for position in positions)) for slope in every]
    held_out = _held_out(rows, by, moving, together or [str(index) for index in range(len(rows))])
    if held_out > before * _GAIN:
        reason = f"runs left out are {held_out:.1%} off with it and {before:.1%} without: nothing is gained"
        return Part(rows=len(rows), before=before, held_out=held_out, kept=kept | dict.fromkeys(moving, reason))
    values = _clamped(solve(rows, by, moving, CLUSTER))
    tuned = {}
    for name, position in zip(moving, positions, strict=True):
        if abs(values[name] / constant(name) - 1) < _STILL:
            kept[name] = "the runs agree with its default"
        else:
            tuned[name] = Tuned(values[name], resting(every, position))
    after = mean_error(rows, {name: each.value for name, each in tuned.items()})
    return Part(rows=len(rows), before=before, after=after, held_out=held_out, tuned=tuned, kept=kept)


def _held_out(rows: Sequence[Row], by: Sequence[Slope], names: Sequence[str], together: Sequence[str]) -> float:
    """Mean error over all folds, each predicted with constants that the others gave. Every fifth run is of one fold:
    tables list like runs side by side, and each fold shall have some of each."""
    total, order = 0.0, {run: number for number, run in enumerate(dict.fromkeys(together))}
    for fold in range(_FOLDS):
        inside = [index for index, run in enumerate(together) if order[run] % _FOLDS == fold]
        outside = [index for index, run in enumerate(together) if order[run] % _FOLDS != fold]
        values = solve([rows[index] for index in outside], [by[index] for index in outside], names, CLUSTER)
        total += mean_error([rows[index] for index in inside], _clamped(values)) * len(inside)
    return total / len(rows)


def _clamped(values: Mapping[str, float]) -> dict[str, float]:
    return {name: tunable()[name].clamped(value) for name, value in values.items()}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
