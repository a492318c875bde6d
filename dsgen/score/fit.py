"""Named constants estimated over measured runs; and how well the estimate holds for sources that it did not see.

Only constants that no derivation or source settles are estimated, each one number for all rows. The model is nearly
linear in logarithms: log y(c) = log y(c0) + sum J log(c / c0). Minimised is twice the sum over rows of |log predicted -
log measured| / noise, a row weighing one over the root of its source's rows, plus ((log c - log c0) / s)^2 for each
constant: it stays near what is stated, unless rows say otherwise. By iteratively reweighted least squares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Protocol

from dsgen.facts.constants import constant, constants_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How much rows weigh against what is stated."""

    freedom: float = 0.35
    """Standard deviation of a constant's logarithm around what is stated (s)."""
    freedoms: Mapping[str, float] = field(default_factory=dict)
    """Likewise, of constants that have one of their own."""
    noise: float = 1.0
    """Residual of a row that is as unlikely as a constant one s away."""
    sources_alike: bool = True
    """A row weighs one over the root of its source's rows; otherwise all weigh alike."""

    def of(self, name: str) -> float:
        """One constant's freedom."""
        return self.freedoms.get(name, self.freedom)


STATED = Trust()
"""What is stated is nearly right."""
_STEP = 0.05
"""Of the logarithm, in numeric derivatives."""
_ROUNDS = 30
_TANGENTS = 3
"""Times that slopes are taken, each time where the last fit ended."""
_SMALL = 0.02
"""Residuals below this weigh alike in the reweighting."""
_FELT = 0.01
"""A row rests on a constant where its prediction changes by this share of the constant's change."""


class Row(Protocol):
    """One measured figure."""

    @property
    def source(self) -> str:
        """Where it is from."""

    def residual(self) -> float:
        """log predicted - log measured, with the constants of now."""


@dataclass(frozen=True, slots=True)
class Held:
    """Mean errors of one source's rows."""

    count: int
    within: float
    """With constants that were estimated over all sources."""
    without: float
    """With constants that were estimated over the others."""


@dataclass(frozen=True, slots=True)
class Slope:
    """How one row's residual depends on the constants."""

    at: float
    """The residual with the constants of now."""
    by: tuple[float, ...]
    """Its derivative by the logarithm of each constant."""


def estimate(rows: Sequence[Row], names: Sequence[str], trust: Trust = STATED) -> dict[str, float]:
    """The constants that fit ``rows`` best, near those of now."""
    return solve(rows, fitted_slopes(rows, names, trust), names, trust)


def leave_one_out(rows: Sequence[Row], names: Sequence[str], trust: Trust = STATED) -> dict[str, Held]:
    """Each source's mean error with the constants that all sources give, and with those that the others give."""
    found, by = {}, fitted_slopes(rows, names, trust)
    everything = solve(rows, by, names, trust)
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        others = [(row, slope) for row, slope in zip(rows, by, strict=True) if row.source != source]
        if not others:
            continue
        rest = solve([row for row, _ in others], [slope for _, slope in others], names, trust)
        found[source] = Held(len(own), mean_error(own, everything), mean_error(own, rest))
    return found


def mean_error(rows: Sequence[Row], values: Mapping[str, float]) -> float:
    """Mean of |predicted / measured - 1| with these constants."""
    with constants_as(values):
        return sum(abs(exp(row.residual()) - 1) for row in rows) / len(rows)


def slopes(rows: Sequence[Row], names: Sequence[str]) -> list[Slope]:
    """Of each row, by differences."""
    base = [row.residual() for row in rows]
    columns = []
    for name in names:
        with constants_as({name: constant(name) * exp(_STEP)}):
            columns.append([(row.residual() - before) / _STEP for row, before in zip(rows, base, strict=True)])
    return [Slope(at, tuple(column[index] for column in columns)) for index, at in enumerate(base)]


def fitted_slopes(rows: Sequence[Row], names: Sequence[str], trust: Trust = STATED) -> list[Slope]:
    """Slopes where the fit ends, in place of those where it starts: a logarithm of a sum is not straight. ``at`` is
    what the straight line through that point says of the constants of now."""
    moved = [0.0] * len(names)
    found: list[Slope] = []
    for _ in range(_TANGENTS):
        there = {name: constant(name) * exp(move) for name, move in zip(names, moved, strict=True)}
        with constants_as(there):
            by = slopes(rows, names)
        found = [
            Slope(slope.at - sum(each * move for each, move in zip(slope.by, moved, strict=True)), slope.by)
            for slope in by
        ]
        values = solve(rows, found, names, trust)
        moved = [log(values[name] / constant(name)) for name in names]
    return found


def resting(by: Sequence[Slope], position: int) -> int:
    """How many rows depend on the constant at ``position``."""
    return sum(abs(slope.by[position]) > _FELT for slope in by)


def solve(rows: Sequence[Row], by: Sequence[Slope], names: Sequence[str], trust: Trust = STATED) -> dict[str, float]:
    """The constants for rows whose slopes are known."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.source] = sizes.get(row.source, 0) + 1
    weights = [(1 / sqrt(sizes[row.source]) if trust.sources_alike else 1) / trust.noise for row in rows]
    moved = [0.0] * len(names)
    for _ in range(_ROUNDS):
        matrix = [
            [(1 / trust.of(name) ** 2 if i == j else 0.0) for j in range(len(names))] for i, name in enumerate(names)
        ]
        right = [0.0] * len(names)
        for slope, weight in zip(by, weights, strict=True):
            left = slope.at + sum(each * move for each, move in zip(slope.by, moved, strict=True))
            heavy = weight / max(abs(left), _SMALL)
            for i, each in enumerate(slope.by):
                if each:
                    right[i] -= heavy * each * slope.at
                    for j, other in enumerate(slope.by):
                        matrix[i][j] += heavy * each * other
        moved = _linear(matrix, right)
    return {name: constant(name) * exp(move) for name, move in zip(names, moved, strict=True)}


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a small positive definite system by Gaussian elimination."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for i in range(size):
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [own - factor * above for own, above in zip(rows[j], rows[i], strict=True)]
    found = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * found[j] for j in range(i + 1, size))
        found[i] = (rows[i][size] - known) / rows[i][i]
    return found
