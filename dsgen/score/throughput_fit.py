"""Named constants of the step time, estimated over measured runs (dsgen/score/fit.py)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from dsgen.errors import ProblemsError
from dsgen.facts.constants import constants_as
from dsgen.facts.priors import priors
from dsgen.score import fit
from dsgen.score.fit import Held, Row, Trust
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.score.throughput import speed
from dsgen.score.timed import Job, job_of, on_one_network

ESTIMATED = tuple(priors())
"""Names of constants.csv."""


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


def observations(runs: Iterable[Run]) -> list[Observation]:
    """Of the runs that have a speed in tokens and can be predicted."""
    found = []
    for run in on_one_network(runs):
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
    return fit.estimate(rows, names)


def from_priors(rows: Sequence[Row]) -> dict[str, float]:
    """The constants that fit ``rows`` best, near what was known before them."""
    with constants_as(_PRIORS):
        return fit.estimate(rows, ESTIMATED, _TRUST)


def leave_one_out(rows: Sequence[Row]) -> dict[str, Held]:
    """Each source's mean error with the constants that all sources give, and with those that the others give: both from
    priors.csv, since what constants.csv states has seen every source."""
    with constants_as(_PRIORS):
        return fit.leave_one_out(rows, ESTIMATED, _TRUST)


def mean_error(rows: Sequence[Observation], values: Mapping[str, float]) -> float:
    """Mean of |predicted / measured - 1| with these constants."""
    return fit.mean_error(rows, values)


_PRIORS = {name: prior.value for name, prior in priors().items()}
_TRUST = Trust(freedoms={name: prior.spread for name, prior in priors().items()})
