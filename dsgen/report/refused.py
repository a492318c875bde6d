"""The refused plans, those that fail alike on one line."""

from collections.abc import Iterable, Sequence

from dsgen.planner.refusal import batch_words, offload_words, overflow_words, rank_words, stage_name
from dsgen.planner.values import Rejected
from dsgen.target import Format


def refused_lines(rejected: Sequence[Rejected], format: Format = "deepspeed") -> list[str]:
    """One line for each way to fail, in the order of the first plan that failed so.

    A lever that does not touch the overflowing part changes nothing, so many plans miss by the same bytes.
    """
    groups: dict[tuple[str, ...], list[Rejected]] = {}
    for entry in rejected:
        groups.setdefault(_failure(entry), []).append(entry)
    return [_line(failure, entries, format) for failure, entries in groups.items()]


def _failure(entry: Rejected) -> tuple[str, ...]:
    if entry.candidate is None:
        return (entry.reason,)
    return (overflow_words(entry.candidate.fit), batch_words(entry.plan), *offload_words(entry.plan))


def _line(failure: tuple[str, ...], entries: list[Rejected], format: Format) -> str:
    if entries[0].candidate is None:
        return entries[0].reason
    overflow, batch, *offload = failure
    kinds_of: dict[str, list[str]] = {}
    for entry in entries:
        name = ", ".join([stage_name(entry.plan, format), *rank_words(entry.plan)])
        kinds_of.setdefault(name, []).append(str(entry.plan.checkpointing))
    stages_with: dict[tuple[str, ...], list[str]] = {}
    for stage, kinds in kinds_of.items():
        stages_with.setdefault(tuple(kinds), []).append(stage)
    levers = "; ".join(_levers(stages, kinds) for kinds, stages in stages_with.items())
    return f"{', '.join([levers, *offload, batch])}: {overflow}"


def _levers(stages: list[str], kinds: tuple[str, ...]) -> str:
    name = _or(stages)
    if kinds == ("none",):
        return name
    return f"{name} with {_or('no' if kind == 'none' else kind for kind in kinds)} checkpointing"


def _or(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
