"""Named constants of the step time, estimated over measured runs; and how well the estimate holds for sources that it
did not see.

Only constants that no derivation or source settles are estimated, each one number for all rows. The model is nearly
linear in logarithms: log t(c) = log t(c0) + sum J log(c / c0). Minimised is the sum over rows of |log predicted -
log measured|, a row weighing one over the root of its source's rows, plus ((log c - log c0) / s)^2 for each constant:
it stays near what is stated, unless rows say otherwise. By iteratively reweighted least squares.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from dsgen.errors import ProblemsError
from dsgen.facts.constants import constant, constants_as
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.score.throughput import speed
from dsgen.score.timed import Job, job_of

ESTIMATED = (
    "sustained",
    "sustained_hopper",
    "memory_share",
    "first_flash",
    "flash_backward_hopper",
    "rowwise_fp8",
    "contention",
    "network_share",
    "host_launch",
    "host_step",
    "host_unit_fsdp",
    "host_layer_zero3",
    "host_ring",
    "host_layer_megatron",
    "host_chunk",
    "host_newer",
)
"""Names of constants.csv."""
_FREEDOM = 0.35
"""Standard deviation of a constant's logarithm around what is stated, in units of rows' residuals."""
_STEP = 0.05
"""Of the logarithm, in numeric derivatives."""
_ROUNDS = 30
_SMALL = 0.02
"""Residuals below this weigh alike in the reweighting."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One run whose speed is known in tokens."""

    source: str
    job: Job
    measured: float
    """Tokens per second per GPU."""

    def residual(self) -> float:
        """log predicted - log measured, with the constants of now."""
        return log(self.job.speed() / self.measured)


@dataclass(frozen=True, slots=True)
class Held:
    """Mean errors of one source's rows."""

    count: int
    within: float
    """With constants that were estimated over all sources."""
    without: float
    """With constants that were estimated over the others."""


def observations(runs: Iterable[Run]) -> list[Observation]:
    """Of the runs that have a speed in tokens and can be predicted."""
    found = []
    for run in runs:
        measured = speed(run)
        if measured.error is None or measured.measured is None:
            continue
        try:
            found.append(Observation(run.source, job_of(run), measured.measured))
        except (SkippedError, ProblemsError):  # pragma: no cover - an error means that it was predicted
            continue
    return found


def estimate(rows: Sequence[Observation], names: Sequence[str] = ESTIMATED) -> dict[str, float]:
    """The constants that fit ``rows`` best, near those of now."""
    return _solve(rows, _slopes(rows, names), names)


def leave_one_out(rows: Sequence[Observation], names: Sequence[str] = ESTIMATED) -> dict[str, Held]:
    """Each source's mean error with the constants that all sources give, and with those that the others give."""
    slopes = _slopes(rows, names)
    everything = _solve(rows, slopes, names)
    found = {}
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        others = [(row, slope) for row, slope in zip(rows, slopes, strict=True) if row.source != source]
        if not others:
            continue
        rest = _solve([row for row, _ in others], [slope for _, slope in others], names)
        found[source] = Held(len(own), mean_error(own, everything), mean_error(own, rest))
    return found


def mean_error(rows: Sequence[Observation], values: Mapping[str, float]) -> float:
    """Mean of |predicted / measured - 1| with these constants."""
    with constants_as(values):
        return sum(abs(exp(row.residual()) - 1) for row in rows) / len(rows)


@dataclass(frozen=True, slots=True)
class _Slope:
    at: float
    """The residual with the constants of now."""
    by: tuple[float, ...]
    """Its derivative by the logarithm of each constant."""


def _slopes(rows: Sequence[Observation], names: Sequence[str]) -> list[_Slope]:
    base = [row.residual() for row in rows]
    columns = []
    for name in names:
        with constants_as({name: constant(name) * exp(_STEP)}):
            columns.append([(row.residual() - before) / _STEP for row, before in zip(rows, base, strict=True)])
    return [_Slope(at, tuple(column[index] for column in columns)) for index, at in enumerate(base)]


def _solve(rows: Sequence[Observation], slopes: Sequence[_Slope], names: Sequence[str]) -> dict[str, float]:
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.source] = sizes.get(row.source, 0) + 1
    weights = [1 / sqrt(sizes[row.source]) for row in rows]
    moved = [0.0] * len(names)
    for _ in range(_ROUNDS):
        matrix = [[(1 / _FREEDOM**2 if i == j else 0.0) for j in range(len(names))] for i in range(len(names))]
        right = [0.0] * len(names)
        for slope, weight in zip(slopes, weights, strict=True):
            left = slope.at + sum(by * move for by, move in zip(slope.by, moved, strict=True))
            heavy = weight / max(abs(left), _SMALL)
            for i, by in enumerate(slope.by):
                if by:
                    right[i] -= heavy * by * slope.at
                    for j, other in enumerate(slope.by):
                        matrix[i][j] += heavy * by * other
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
