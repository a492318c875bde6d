"""Climbs the ladder: the first rung that is legal and fits, what was refused below it, what fits above."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from dsgen.legality.check import explain
from dsgen.legality.gradient_sums import sums_coarsely
from dsgen.legality.values import Row
from dsgen.plan import Plan
from dsgen.planner.gradients import coarse_reason
from dsgen.planner.ladder import Rung
from dsgen.planner.micro_batch import Split, largest
from dsgen.planner.refusal import IllegalPlanError, NothingFitsError, plan_name, refusal
from dsgen.planner.values import Candidate, Rejected

RUNNERS_UP = 3

Maker = Callable[[Rung, Split], Plan]


@dataclass(frozen=True, slots=True)
class Found:
    """What a climb brings back."""

    chosen: Candidate
    alternatives: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]


def climb(
    rungs: Iterable[Rung],
    splits: Sequence[Split],
    makers: Sequence[Maker],
    broken: Callable[[Plan], list[Row]],
    weigh: Callable[[Plan], Candidate],
) -> Found:
    """The first fitting rung with its largest fitting micro-batch, and up to RUNNERS_UP further ones.

    Of a rung the plans of the first of ``makers`` are taken, if one fits, else those of the next. A plan that adds up
    too many gradients in 16 bits counts as refused, unless no other fits.

    Raises IllegalPlanError where no rung is legal, NothingFitsError where no legal one fits.
    """
    fitting: list[Candidate] = []
    coarse: list[Candidate] = []
    rejected: list[Rejected] = []
    said: set[str] = set()
    illegal: tuple[Plan, list[Row]] | None = None
    for rung in rungs:
        plan = makers[-1](rung, splits[0])
        rows = broken(plan)
        if rows:
            illegal = illegal or (plan, rows)
            # One entry a rule is enough: the same one forbids whole flights of the ladder.
            if not fitting and rows[0].name not in said:
                said.add(rows[0].name)
                rejected.append(Rejected(plan=plan, reason=f"{explain(rows[0], plan)} [{rows[0].name}]"))
            continue
        candidate = _best(rung, splits, makers, weigh)
        if candidate.fit.fits and sums_coarsely(candidate.plan):
            coarse.append(candidate)
            if not fitting:
                reason = f"{plan_name(candidate.plan)}: {coarse_reason(candidate.plan)}"
                rejected.append(Rejected(plan=candidate.plan, reason=reason))
        elif candidate.fit.fits:
            fitting.append(candidate)
        elif not fitting:
            rejected.append(Rejected(plan=candidate.plan, reason=refusal(candidate), candidate=candidate))
        if len(fitting) > RUNNERS_UP:
            break
    if fitting:
        return Found(fitting[0], tuple(fitting[1:]), tuple(rejected))
    if coarse:
        passed = [candidate.plan for candidate in coarse]
        refused = tuple(entry for entry in rejected if entry.plan not in passed)
        return Found(coarse[0], tuple(coarse[1 : 1 + RUNNERS_UP]), refused)
    weighed = [entry.candidate for entry in rejected if entry.candidate is not None]
    if weighed:
        raise NothingFitsError(min(weighed, key=_overshoot), tuple(rejected))
    assert illegal is not None  # a ladder has at least one rung
    raise IllegalPlanError(*illegal)


def _best(
    rung: Rung, splits: Sequence[Split], makers: Sequence[Maker], weigh: Callable[[Plan], Candidate]
) -> Candidate:
    """The rung with the largest micro-batch that fits; of the last maker with the smallest if none does."""
    weighed = cache(weigh)
    for make in makers:

        def fits(split: Split, make: Maker = make) -> bool:
            return weighed(make(rung, split)).fit.fits

        split = largest(splits, fits)
        if split is not None:
            return weighed(make(rung, split))
    return weighed(makers[-1](rung, splits[0]))


def _overshoot(candidate: Candidate) -> tuple[float, float]:
    """How far the fullest place is beyond what it has, as a ratio; among equals, all places together."""
    ratios = [overflow.needed / max(overflow.available, 1) for overflow in candidate.fit.overflows]
    return max(ratios, default=0.0), sum(ratios)
