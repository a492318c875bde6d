"""What was passed over: every simpler plan than the chosen one, with what overflowed, forbids it or makes it slower."""

from collections.abc import Iterator

from dsgen.legality.check import explain
from dsgen.legality.gradient_sums import sums_coarsely
from dsgen.legality.values import Row
from dsgen.plan import Plan
from dsgen.planner.choose import Choice
from dsgen.planner.gradients import coarse_reason
from dsgen.planner.ranks import PLAIN
from dsgen.planner.refusal import plan_name, refusal, slower_words
from dsgen.planner.search import Option, Search
from dsgen.planner.values import Candidate, Rejected


def rejections(search: Search, choice: Choice) -> tuple[Rejected, ...]:
    """Below the chosen option, those of its own ranks and those that split nothing but the data; simplest first.

    One entry a rule is enough: the same one forbids whole flights of the ladder. Runners-up stand elsewhere.
    """
    option = choice.option
    plans: set[Plan] = {choice.chosen.plan, *(candidate.plan for candidate in choice.alternatives)}
    below = [other for other in search.options[: option.place] if other.rung.ranks in (PLAIN, option.rung.ranks)]
    return tuple(_entries(search, below, choice.chosen, plans))


def _entries(search: Search, below: list[Option], chosen: Candidate, plans: set[Plan]) -> Iterator[Rejected]:
    said: set[str] = set()
    all_coarse = sums_coarsely(chosen.plan)
    for other in below:
        if rows := search.forbidding(other):
            yield from _illegal(search, other, rows[0], said)
            continue
        candidate = search.best(other)
        if candidate is None:
            overflows = search.smallest(other)
            if overflows.plan not in plans:
                plans.add(overflows.plan)
                yield Rejected(
                    plan=overflows.plan, reason=refusal(overflows, search.maker.target.format), candidate=overflows
                )
        elif candidate.plan not in plans:
            plans.add(candidate.plan)
            name = plan_name(candidate.plan, search.maker.target.format)
            if sums_coarsely(candidate.plan) and not all_coarse:
                yield Rejected(plan=candidate.plan, reason=f"{name}: {coarse_reason(candidate.plan)}")
            elif candidate.fit.tight and not chosen.fit.tight and candidate.speed >= chosen.speed:
                yield Rejected(plan=candidate.plan, reason=f"{name}: fits with little to spare, and is hardly faster")
            else:
                yield Rejected(plan=candidate.plan, reason=f"{name}: fits, but {slower_words(candidate, chosen)}")


def _illegal(search: Search, option: Option, row: Row, said: set[str]) -> Iterator[Rejected]:
    """Each rule is told of once, for the first plan that it forbids."""
    if row.name not in said:
        said.add(row.name)
        plan = search.maker.make(option.rung, option.splits[0], exactly=False)
        yield Rejected(plan=plan, reason=f"{explain(row, plan)} [{row.name}]")


def all_weighed(search: Search) -> tuple[Rejected, ...]:
    """Where nothing fits: every legal option that splits nothing but the data, and of the others the one of each split
    that comes closest."""
    return tuple(_nothing(search))


def _nothing(search: Search) -> Iterator[Rejected]:
    said: set[str] = set()
    plans: set[Plan] = set()
    closest: dict[object, Candidate] = {}
    recomputes_all = any(option.rung.checkpointing.kind == "full" for option in search.options)
    for option in search.options:
        if rows := search.forbidding(option):
            yield from _illegal(search, option, rows[0], said)
            continue
        ranks = option.rung.ranks
        if ranks != PLAIN and recomputes_all and option.rung.checkpointing.kind != "full":
            continue
        overflows = search.smallest(option)
        if overflows.plan in plans:  # FSDP2 with one micro-batch, whatever the rung says of its reduction
            continue
        plans.add(overflows.plan)
        if ranks == search.options[0].rung.ranks:
            yield Rejected(
                plan=overflows.plan, reason=refusal(overflows, search.maker.target.format), candidate=overflows
            )
        elif ranks not in closest or overshoot(overflows) < overshoot(closest[ranks]):
            closest[ranks] = overflows
    for overflows in closest.values():
        yield Rejected(plan=overflows.plan, reason=refusal(overflows, search.maker.target.format), candidate=overflows)


def overshoot(candidate: Candidate) -> tuple[float, float]:
    """How far the fullest place is beyond what it has, as a ratio; among equals, all places together."""
    ratios = [overflow.needed / max(overflow.available, 1) for overflow in candidate.fit.overflows]
    return max(ratios, default=0.0), sum(ratios)
