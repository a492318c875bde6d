"""Looks through everything legal, the fastest on paper first, until nothing that is left could win.

- A rung's speed can't be more than that of its largest micro-batch, whether that fits or not, and offload makes no plan
  faster than the same without: so rungs are asked in the order of that bound, and the rest is never weighed.
- Memory grows with the micro-batch: the largest that fits is found by bisection.
- Recomputing more keeps less: where a rung does not fit with full checkpointing, those with less are not asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from dsgen.legality.gradient_sums import sums_coarsely
from dsgen.legality.values import Row
from dsgen.plan import Plan
from dsgen.planner.ladder import Rung
from dsgen.planner.maker import Maker
from dsgen.planner.micro_batch import Split, largest
from dsgen.planner.ranking import as_fast, handicap, ranked
from dsgen.planner.ranks import Ranks, kind_of_split
from dsgen.planner.refusal import IllegalPlanError
from dsgen.planner.values import Candidate

RUNNERS_UP = 3

# Of shallower models a layer that is recomputed can need as much as all that are kept.
_FEW_LAYERS = 4


@dataclass(frozen=True, slots=True)
class Option:
    """One rung with the ways to cut a rank's sequences."""

    rung: Rung
    splits: tuple[Split, ...]
    place: int
    """Where on the ladder it stands: the lower, the simpler."""


@dataclass(slots=True)
class Search:
    """What is known so far."""

    maker: Maker
    options: tuple[Option, ...]
    fitting: list[tuple[Option, Candidate]] = field(default_factory=list)
    """Each option that fits, with its largest micro-batch."""
    illegal: dict[int, list[Row]] = field(default_factory=dict)
    _hopeless: set[Rung] = field(default_factory=set)
    _found: dict[int, Candidate | None] = field(default_factory=dict)

    def forbidding(self, option: Option) -> list[Row]:
        """The rules that the option breaks; empty where it is legal."""
        found = self.illegal.get(option.place)
        if found is None:
            plan = self.maker.make(option.rung, option.splits[0], exactly=False)
            found = self.illegal[option.place] = self.maker.broken(plan)
        return found

    def bound(self, option: Option) -> float:
        """The most tokens per second and GPU that the option can reach, less its handicap: fewer and larger
        micro-batches launch, gather and reduce less, but leave a pipeline emptier."""
        pipes = option.rung.ranks.pipeline_parallel > 1
        ends = option.splits if pipes else option.splits[-1:]
        plans = [self.maker.make(option.rung, split, exactly=False) for split in ends]
        return max(self.maker.speed(plan) / (1 + handicap(plan)) for plan in plans)

    def best(self, option: Option) -> Candidate | None:
        """The option with its largest micro-batch that fits, summing gradients exactly if that fits at all."""
        if option.place not in self._found:
            self._found[option.place] = self._best(option)
        return self._found[option.place]

    def _best(self, option: Option) -> Candidate | None:
        maker = self.maker
        for exactly in (True, False):

            def plan(split: Split, exactly: bool = exactly) -> Plan:
                return maker.make(option.rung, split, exactly=exactly)

            split = largest(option.splits, lambda split: maker.fit(plan(split)).fits)
            if split is not None:
                return maker.candidate(plan(split))
        return None

    def smallest(self, option: Option) -> Candidate:
        """The option as little memory as it can take: what is shown where it does not fit."""
        return self.maker.candidate(self.maker.make(option.rung, option.splits[0], exactly=False))

    def smallest_fits(self, option: Option) -> bool:
        """Whether anything of the option fits; its step is not timed."""
        return self.maker.fit(self.maker.make(option.rung, option.splits[0], exactly=False)).fits

    def safer(self, option: Option, than: Candidate) -> Candidate | None:
        """The option with the largest micro-batch that leaves room to spare; None where that is none, or the same."""
        maker, cut = self.maker, Split(than.plan.micro_batch, than.plan.accumulation)
        # With one micro-batch nothing adds up, so its plan does not show how several would.
        exactly = maker.make(option.rung, cut) == than.plan

        def roomy(split: Split) -> bool:
            fits = maker.fit(maker.make(option.rung, split, exactly=exactly))
            return fits.fits and not fits.tight

        split = largest(option.splits, roomy)
        return None if split is None else maker.candidate(maker.make(option.rung, split, exactly=exactly))

    def is_hopeless(self, option: Option) -> bool:
        """Whether the same rung with full checkpointing is known not to fit, or is found not to."""
        full = _full(option.rung)
        if full == option.rung or len(self.maker.shapes.blocks) < _FEW_LAYERS:
            return False
        if full not in self._hopeless:
            plan = self.maker.make(full, option.splits[0], exactly=False)
            if self.maker.broken(plan) or self.maker.fit(plan).fits:
                return False
            self._hopeless.add(full)
        return True


def _full(rung: Rung) -> Rung:
    return replace(rung, checkpointing=replace(rung.checkpointing, kind="full", every=1))


def options_of(rungs: Sequence[Rung], splits: Mapping[Ranks, tuple[Split, ...]]) -> tuple[Option, ...]:
    """The ladder with its splits."""
    return tuple(Option(rung, splits[rung.ranks], place) for place, rung in enumerate(rungs))


def explore(search: Search) -> None:
    """Fills ``fitting`` with the fastest options, enough to choose from.

    Raises IllegalPlanError where no option is legal.
    """
    legal = False
    queue = _queue(search)
    heapify(queue)
    top: list[float] = []
    kinds: set[tuple[str, ...]] = set()
    while queue:
        bound, place, exact = heappop(queue)
        if len(top) > RUNNERS_UP and -bound < min(as_fast(top[-1]), top[-1 - RUNNERS_UP]):
            break
        option = search.options[place]
        if search.forbidding(option):
            continue
        legal = True
        if not exact:
            heappush(queue, (-min(search.bound(option), -bound), place, True))
            continue
        if search.is_hopeless(option):
            continue
        candidate = search.best(option)
        if candidate is not None:
            search.fitting.append((option, candidate))
            kind = kind_of_split(candidate.plan)
            # Of each kind of split only the best will be shown (choose.py); the first found is nearly that.
            if not sums_coarsely(candidate.plan) and (not kind or kind not in kinds):
                kinds.add(kind)
                top = sorted([*top, ranked(candidate)])
    if not legal:
        option = search.options[0]
        raise IllegalPlanError(
            search.maker.make(option.rung, option.splits[0], exactly=False), search.forbidding(option)
        )


def _bound_of_base(search: Search, option: Option) -> float:
    """Endless where that rung itself is illegal: others of its kind may be legal, and to time it need make no sense."""
    plan = search.maker.make(option.rung, option.splits[0], exactly=False)
    return math.inf if search.maker.broken(plan) else search.bound(option)


def _queue(search: Search) -> list[tuple[float, int, bool]]:
    """(minus the bound, place, whether it is the option's own bound): offloading options get that of those without."""
    found = []
    known: dict[Rung, float] = {}
    for option in search.options:
        base = replace(option.rung, offload_optimizer="none", offload_parameters="none", reduce_each_micro_batch=False)
        if base not in known:
            known[base] = _bound_of_base(search, replace(option, rung=base))
        found.append((-known[base], option.place, base == option.rung))
    return found
