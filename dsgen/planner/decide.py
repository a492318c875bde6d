"""Decides: wishes and everything known about the job in, the fastest plan that fits and its reasons out."""

from dsgen.hardware import Hardware
from dsgen.plan import Wishes
from dsgen.planner.choose import choose
from dsgen.planner.gradients import sum_reason
from dsgen.planner.ladder import rungs
from dsgen.planner.maker import Maker, beside_the_ladder
from dsgen.planner.micro_batch import Split, global_batch_of, splits
from dsgen.planner.precision import precision_of
from dsgen.planner.ranks import FIELDS, Ranks, rank_splits
from dsgen.planner.reasons import reasons_of
from dsgen.planner.refusal import NothingFitsError, WishError
from dsgen.planner.rejections import all_weighed, overshoot, rejections
from dsgen.planner.search import Option, Search, explore, options_of
from dsgen.planner.unknowns import unknowns
from dsgen.planner.values import Decision
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target


def decide(
    wishes: Wishes,
    shapes: Shapes,
    hardware: Hardware,
    training: Training,
    sequence_length: int,
    target: Target,
) -> Decision:
    """The fastest legal plan that fits under the wishes (dsgen/planner/choose.py).

    Raises RefusedError where a wish is illegal (IllegalPlanError says which rule), where the global batch can't be met,
    or where nothing fits (NothingFitsError has the closest plan).
    """
    search, notes = _space(wishes, shapes, hardware, training, sequence_length, target)
    explore(search)
    choice = choose(search)
    if choice is None:
        rejected = all_weighed(search)
        weighed = [entry.candidate for entry in rejected if entry.candidate is not None]
        raise NothingFitsError(min(weighed, key=overshoot), rejected, format=target.format)
    chosen = choice.chosen
    maker = search.maker
    rejected = rejections(search, choice)
    batch = global_batch_of(training, sequence_length, chosen.plan.data_parallel)
    return Decision(
        chosen=chosen,
        reasons=reasons_of(choice, rejected, wishes, batch, sum_reason(chosen.plan, maker.broken), target.format),
        alternatives=choice.alternatives,
        rejected=rejected,
        notes=(*notes, *unknowns(chosen, hardware)),
    )


def feasible(
    wishes: Wishes,
    shapes: Shapes,
    hardware: Hardware,
    training: Training,
    sequence_length: int,
    target: Target,
) -> bool:
    """Whether any legal plan fits: asked of the rungs that recompute everything first, since they take least.

    Raises RefusedError as ``decide`` does for what is illegal.
    """
    search, _ = _space(wishes, shapes, hardware, training, sequence_length, target)
    frugal = sorted(search.options, key=lambda option: (option.rung.checkpointing.kind != "full", -option.place))
    for option in frugal:
        if not search.forbidding(option) and not search.is_hopeless(option) and search.smallest_fits(option):
            return True
    return False


def _space(
    wishes: Wishes, shapes: Shapes, hardware: Hardware, training: Training, sequence_length: int, target: Target
) -> tuple[Search, tuple[str, ...]]:
    """Everything that may be tried, and what was assumed."""
    precision, notes = precision_of(wishes.precision, hardware, shapes)
    maker = Maker(
        wishes=wishes,
        shapes=shapes,
        hardware=hardware,
        training=training,
        sequence_length=sequence_length,
        target=target,
        precision=precision,
        wishes_beside=beside_the_ladder(wishes),
    )
    cut: dict[Ranks, tuple[Split, ...]] = {}
    refused: list[WishError] = []
    assumed: tuple[str, ...] = ()
    all_ranks = rank_splits(wishes, hardware, shapes, target)
    for ranks in all_ranks:
        if refused and not cut and not _too_few_for_all(training, hardware):
            break
        data_parallel = max(1, hardware.world_size // ranks.model)
        try:
            batch = global_batch_of(training, sequence_length, data_parallel)
            cut[ranks], said = splits(wishes, batch, data_parallel, sequence_length)
        except WishError as error:
            refused.append(error)
            continue
        assumed = assumed or said
    if not cut:
        raise refused[0]
    node = hardware.gpus_per_node if hardware.nodes > 1 and hardware.gpus_per_node > 1 else None
    ladder = list(rungs(wishes, hardware.world_size, target.format, ranks=tuple(cut), node=node))
    search = Search(maker, options_of(ladder, cut))
    search.options = _legal_ranks(search, all_ranks[0])
    if not search.options:
        raise refused[0]  # only ranks that share a sequence could do with so few, and none of them is legal
    return search, (*notes, *assumed)


def _too_few_for_all(training: Training, hardware: Hardware) -> bool:
    """Whether a batch that data-parallel ranks can't share has fewer sequences than there are ranks: then splitting
    each sequence, or the model, is a way; any other batch is refused with the nearest that can be shared."""
    return training.global_batch is not None and training.global_batch < hardware.world_size


def _legal_ranks(search: Search, first: Ranks) -> tuple[Option, ...]:
    """Without the ranks that a rule about ranks forbids, so that nothing is asked of their rungs; the first stay, to be
    refused with the rule."""
    forbidden: set[Ranks] = set()
    asked: set[Ranks] = set()
    for option in search.options:
        ranks = option.rung.ranks
        if ranks not in asked and ranks != first:
            asked.add(ranks)
            if any(row.fields and FIELDS.issuperset(row.fields) for row in search.forbidding(option)):
                forbidden.add(ranks)
    if not forbidden:
        return search.options
    kept = [option for option in search.options if option.rung.ranks not in forbidden]
    search.illegal.clear()
    return tuple(Option(option.rung, option.splits, place) for place, option in enumerate(kept))
