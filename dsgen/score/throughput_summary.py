"""How well throughput was predicted, by source and together.

Rows of one source and one GPU are ranked against one another: who compares plans does so on one cluster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

from dsgen.score.throughput import Speed

_DIFFER = 1.1
"""Pairs of runs whose measured speeds differ by less are ties."""
_RANKED = 3
"""Fewest rows of one source and GPU whose ranks say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Of rows that were predicted and measured; None where there are none."""

    count: int
    """Rows with an error: those with a speed in tokens."""
    mean: float | None
    """Of the error's size, relative to what was measured."""
    bias: float | None
    """Mean of the error itself: above 0, more is predicted than there is."""
    rank_correlation: float | None
    """Spearman's, of rows of one source and GPU; the mean over such groups, weighed by their rows."""
    pairs: int
    """Of rows of one source and GPU whose measured speeds differ by more than a tenth."""
    right: int
    """Of these, predicted in the right order."""
    skipped: int
    """Rows with a speed that were not predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputSummary:
    """Of one file."""

    sources: dict[str, Throughput]
    all: Throughput
    mean_of_sources: float | None
    """Mean error, each source alike."""


def throughput_summary(speeds: Sequence[Speed]) -> ThroughputSummary:
    """Of the rows that state a speed."""
    rows = [speed for speed in speeds if speed.measured is not None]
    names = sorted({speed.run.source for speed in rows})
    sources = {name: _throughput([speed for speed in rows if speed.run.source == name]) for name in names}
    means = [each.mean for each in sources.values() if each.mean is not None]
    return ThroughputSummary(sources=sources, all=_throughput(rows), mean_of_sources=_mean(means))


def _throughput(rows: Sequence[Speed]) -> Throughput:
    errors = [speed.error for speed in rows if speed.error is not None]
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for speed in rows:
        if speed.comparable is not None and speed.measured is not None:
            key = speed.run.source, speed.run.texts["gpu"]
            groups.setdefault(key, []).append((speed.comparable, speed.measured))
    ranked = [(correlation, len(each)) for each in groups.values() if (correlation := spearman(each)) is not None]
    decided = [
        (first[0] - second[0]) * (first[1] - second[1]) > 0
        for each in groups.values()
        for first, second in combinations(each, 2)
        if max(first[1], second[1]) > _DIFFER * min(first[1], second[1])
    ]
    weight = sum(count for _, count in ranked)
    return Throughput(
        count=len(errors),
        mean=_mean([abs(error) for error in errors]),
        bias=_mean(errors),
        rank_correlation=sum(value * count for value, count in ranked) / weight if weight else None,
        pairs=len(decided),
        right=sum(decided),
        skipped=sum(speed.skipped is not None for speed in rows),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Correlation of the ranks, ties sharing theirs; None for fewer than three pairs, or where a side does not vary."""
    if len(pairs) < _RANKED:
        return None
    first, second = _ranks(pair[0] for pair in pairs), _ranks(pair[1] for pair in pairs)
    middle = (len(pairs) + 1) / 2
    covariance = sum((x - middle) * (y - middle) for x, y in zip(first, second, strict=True))
    spread = sqrt(sum((x - middle) ** 2 for x in first) * sum((y - middle) ** 2 for y in second))
    return covariance / spread if spread else None


def _ranks(values: Iterable[float]) -> list[float]:
    given = list(values)
    order = sorted(given)
    places: dict[float, list[int]] = {}
    for place, value in enumerate(order, start=1):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in given]
