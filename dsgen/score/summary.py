"""How well a whole file was predicted, by source and together.

Only rows that state a figure count for errors, only rows with an outcome for what fits. Sources count alike however
many rows each has: a row weighs one over the rows of its source.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsgen.score.predict import Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of rows that were predicted and measured; None where there are none."""

    count: int
    median: float | None
    """Of the error's size, relative to what was measured."""
    ninetieth: float | None
    bias: float | None
    """Median of the error itself: above 0, more is predicted than there is."""
    coverage: float | None
    """Share of the rows whose measured figure lies in its band."""
    widest: float | None
    """Width of the widest band over what is predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What fits and what does not, counted."""

    fits: int
    """Measured to fit, and predicted at all."""
    accepted: int
    """Of these, predicted to fit."""
    out_of_memory: int
    false_fits: int
    """Measured to run out of memory, and predicted to fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One source, or all."""

    errors: Errors
    outcomes: Outcomes
    skipped: int
    """Rows with a figure or an outcome that were not predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Of one file."""

    sources: dict[str, Group]
    all: Group
    complete: Group
    """Of the rows whose inputs are all known (completeness A)."""
    by_statistic: dict[str, Errors]


def summary(scored: Sequence[tuple[Scored, ...]]) -> Summary:
    """Of the first statistic of every row; by_statistic of all."""
    rows = [each[0] for each in scored]
    names = sorted({row.run.source for row in rows})
    every = [row for each in scored for row in each]
    kinds = sorted({row.statistic for row in every if row.measured is not None})
    return Summary(
        sources={name: _group([row for row in rows if row.run.source == name]) for name in names},
        all=_group(rows),
        complete=_group([row for row in rows if row.run.texts["completeness"] == "a"]),
        by_statistic={kind: _errors([row for row in every if row.statistic == kind]) for kind in kinds},
    )


def _group(rows: Sequence[Scored]) -> Group:
    known = [row for row in rows if row.skipped is None]
    # Rows that only state a speed say that they fitted.
    counted = [row for row in known if row.run.texts["outcome"]]
    fits = [row for row in counted if row.run.fits]
    failed = [row for row in counted if not row.run.fits]
    return Group(
        errors=_errors(rows),
        outcomes=Outcomes(
            fits=len(fits),
            accepted=sum(bool(row.fits) for row in fits),
            out_of_memory=len(failed),
            false_fits=sum(bool(row.fits) for row in failed),
        ),
        skipped=sum(row.skipped is not None and (row.measured is not None or not row.run.fits) for row in rows),
    )


def _errors(rows: Sequence[Scored]) -> Errors:
    known = [(row, error) for row in rows if (error := row.error) is not None]
    if not known:
        return Errors(count=0, median=None, ninetieth=None, bias=None, coverage=None, widest=None)
    sizes: dict[str, int] = {}
    for row, _ in known:
        sizes[row.run.source] = sizes.get(row.run.source, 0) + 1
    weights = [1 / sizes[row.run.source] for row, _ in known]
    sizes_of_errors = [abs(error) for _, error in known]
    widths = [(row.figure.high - row.figure.low) / row.figure.predicted for row, _ in known if row.figure]
    total = sum(weights)
    return Errors(
        count=len(known),
        median=quantile(sizes_of_errors, weights, 0.5),
        ninetieth=quantile(sizes_of_errors, weights, 0.9),
        bias=quantile([error for _, error in known], weights, 0.5),
        coverage=sum(weight for weight, (row, _) in zip(weights, known, strict=True) if row.inside) / total,
        widest=max(widths),
    )


def quantile(values: Iterable[float], weights: Iterable[float], share: float) -> float:
    """The smallest value that at least ``share`` of the weight does not exceed."""
    pairs = sorted(zip(values, weights, strict=True))
    need = share * sum(weight for _, weight in pairs)
    reached = 0.0
    for value, weight in pairs:
        reached += weight
        if reached >= need * (1 - 1e-12):
            return value
    return pairs[-1][0]
