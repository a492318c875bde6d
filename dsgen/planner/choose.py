"""Chooses among what fits, and names the runners-up."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from dsgen.legality.gradient_sums import sums_coarsely
from dsgen.plan import Checkpointing, Plan, ZeroPP
from dsgen.planner.ladder import Rung
from dsgen.planner.ranking import as_fast, ranked
from dsgen.planner.ranks import kind_of_split
from dsgen.planner.search import RUNNERS_UP, Option, Search
from dsgen.planner.values import Candidate


@dataclass(frozen=True, slots=True)
class Choice:
    """The winner with its option, and who comes next."""

    option: Option
    chosen: Candidate
    largest: Candidate
    """The same option with the largest micro-batch that fits."""
    plain: Candidate | None
    """The same without checkpointing, where there is a rung of it: its largest micro-batch, or what does not fit."""
    lower: Candidate | None
    """The same at the next lower stage that is legal: its largest micro-batch, or what does not fit."""
    alternatives: tuple[Candidate, ...]


def choose(search: Search) -> Choice | None:
    """None where nothing fits.

    1. Plans that would add up too many gradients in 16 bits count only where no other fits.
    2. As fast as the fastest is what is within constants.csv's as_fast of it; of an option that fits tightly also
       the largest micro-batch that leaves room, where that is as fast and the wish is not for the most.
    3. Of these, one with room to spare, then the simplest (lowest on the ladder), then the fastest.
    """
    fine = [(option, candidate) for option, candidate in search.fitting if not sums_coarsely(candidate.plan)]
    pool = fine or search.fitting
    if not pool:
        return None
    least = as_fast(max(ranked(candidate) for _, candidate in pool))
    among = [(option, candidate) for option, candidate in pool if ranked(candidate) >= least]
    for option, candidate in tuple(among):
        may_shrink = candidate.fit.tight and search.maker.wishes.micro_batch != "max"
        safer = search.safer(option, candidate) if may_shrink else None
        if safer is not None and ranked(safer) >= least and sums_coarsely(safer.plan) <= (not fine):
            among.append((option, safer))
    option, chosen = min(among, key=lambda each: (each[1].fit.tight, each[0].place, -each[1].speed))
    others = sorted(
        (
            (other, candidate)
            for other, candidate in pool
            if other.place != option.place and candidate.plan != chosen.plan
        ),
        key=lambda each: (-ranked(each[1]), each[0].place),
    )
    largest = search.best(option) or chosen
    return Choice(
        option,
        chosen,
        largest,
        _plain(search, option),
        _lower(search, option),
        tuple(islice(_distinct([candidate for _, candidate in others], chosen), RUNNERS_UP)),
    )


def _plain(search: Search, option: Option) -> Candidate | None:
    """The rung of the option that recomputes nothing."""
    if option.rung.checkpointing.kind == "none":
        return None
    return _at(search, replace(option.rung, checkpointing=Checkpointing("none")))


def _lower(search: Search, option: Option) -> Candidate | None:
    """The rung of the option one stage down, or more where that is illegal."""
    stages = reversed(range(option.rung.zero_stage))
    found = (_at(search, replace(option.rung, zero_stage=stage, zeropp=ZeroPP())) for stage in stages)
    return next((candidate for candidate in found if candidate is not None), None)


def _at(search: Search, rung: Rung) -> Candidate | None:
    """What comes of a rung; None where it is not on the ladder, or illegal."""
    for option in search.options:
        if option.rung == rung and not search.forbidding(option):
            return search.best(option) or search.smallest(option)
    return None


def _distinct(candidates: list[Candidate], chosen: Candidate) -> Iterator[Candidate]:
    """Of each kind of split the best only: that of four GPUs says little beside that of two. FSDP2 with one micro-batch
    reduces once, whatever the rung says of it."""
    plans: set[Plan] = set()
    kinds = {kind_of_split(chosen.plan)}
    for candidate in candidates:
        kind = kind_of_split(candidate.plan)
        if candidate.plan not in plans and (not kind or kind not in kinds):
            plans.add(candidate.plan)
            kinds.add(kind)
            yield candidate
