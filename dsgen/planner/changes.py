"""When nothing fits: the smallest changes of the spec that would help, alone or in pairs, each one tried."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import cast

from dsgen.errors import ProblemsError
from dsgen.hardware import Hardware
from dsgen.planner.refusal import plan_name
from dsgen.planner.values import Decision
from dsgen.spec.values import Method, Spec
from dsgen.target import Format
from dsgen.units import format_bytes

Change = tuple[str, Spec]
Kind = Callable[[Spec], Iterator[Change]]
"""The changes of one kind, the smallest step first."""

# Each kind that has steps doubles (or halves) up to these.
MOST_NODES = 64
MOST_GPUS_PER_NODE = 8
MOST_HOST_MEMORY = 4 * 2**40
LEAST_SEQUENCE = 128

_AND = " with "

# Where fewer single changes than this help, pairs are tried too.
ENOUGH = 2


def helpful_changes(
    spec: Spec, sequence_length: int, hardware: Hardware, decide: Callable[[Spec], Decision]
) -> list[str]:
    """One sentence for each kind of change that makes the job fit, with the smallest step of its kind.

    Where hardly a single one does, also sentences for two that do so together.
    """
    machines = [_more_host_memory(hardware.host_memory), _more_gpus(hardware.gpus_per_node), _more_nodes]
    shorter = _shorter(sequence_length)
    both = _both(_smaller_micro_batch, _flash)
    single = [*_opened(spec), _whole_card, _smaller_micro_batch, _flash, both, _trainer, shorter, _low_rank, *machines]
    found = _smallest(single, spec, decide)
    if len(found) < ENOUGH:
        pairs = [_both(first, second) for first, second in combinations([shorter, _low_rank, *machines], 2)]
        # A pair of which one half is enough by itself says nothing new.
        found |= {
            sentence: decision
            for sentence, decision in _smallest(pairs, spec, decide).items()
            if found.keys().isdisjoint(sentence.split(_AND))
        }
    format = cast(Format, spec.target.format)
    return [f"{sentence} ({plan_name(decision.chosen.plan, format)})" for sentence, decision in found.items()]


def _smallest(kinds: list[Kind], spec: Spec, decide: Callable[[Spec], Decision]) -> dict[str, Decision]:
    """Sentence to decision, of each kind the first step that fits."""
    found = {}
    for kind in kinds:
        for sentence, changed in kind(spec):
            decision = _fitting(changed, decide)
            if decision is not None:
                found[sentence] = decision
                break
    return found


def _fitting(spec: Spec, decide: Callable[[Spec], Decision]) -> Decision | None:
    try:
        return decide(spec)
    except ProblemsError:
        # This change does not help, or is not possible: the global batch can't be shared by so many, say.
        return None


def _both(first: Kind, second: Kind) -> Kind:
    def changes(spec: Spec) -> Iterator[Change]:
        for one, changed in first(spec):
            for other, twice in second(changed):
                yield f"{one}{_AND}{other}", twice

    return changes


def _opened(spec: Spec) -> list[Kind]:
    """For each wish, leaving it open."""
    return [_open(key) for key in spec.want]


def _open(key: str) -> Kind:
    def changes(spec: Spec) -> Iterator[Change]:
        yield f"leave want.{key} open", _with_want(spec, {key: None})

    return changes


def _with_want(spec: Spec, changed: dict[str, object]) -> Spec:
    """The spec with other wishes; None opens one."""
    want = {key: value for key, value in {**spec.want, **changed}.items() if value is not None}
    return replace(spec, want=want)


def _smaller_micro_batch(spec: Spec) -> Iterator[Change]:
    size = spec.want.get("micro_batch")
    while isinstance(size, int) and size > 1:
        size //= 2
        # Accumulation follows: only the product with it is what the optimizer sees.
        yield f"want.micro_batch {size}", _with_want(spec, {"micro_batch": size, "accumulation": None})


def _flash(spec: Spec) -> Iterator[Change]:
    if spec.training.attention == "eager":
        yield "training.attention flash", replace(spec, training=replace(spec.training, attention="flash"))


def _whole_card(spec: Spec) -> Iterator[Change]:
    if spec.memory_budget is not None:
        yield "leave memory_budget out", replace(spec, memory_budget=None)


def _trainer(spec: Spec) -> Iterator[Change]:
    """With it, matrices and sequences can be split; DeepSpeed's own loop, as dsgen writes it, splits neither."""
    if (spec.target.format, spec.target.loaded_by) == ("deepspeed", "deepspeed"):
        yield "target.loaded_by transformers", replace(spec, target=replace(spec.target, loaded_by="transformers"))


def _shorter(sequence_length: int) -> Kind:
    def changes(spec: Spec) -> Iterator[Change]:
        length = sequence_length
        while length > LEAST_SEQUENCE:
            length //= 2
            training = replace(spec.training, sequence_length=length, longest=False)
            yield f"training.sequence_length {length}", replace(spec, training=training)

    return changes


def _low_rank(spec: Spec) -> Iterator[Change]:
    if spec.training.method.type == "full":
        training = replace(spec.training, method=Method(type="lora"))
        yield "training.method {type: lora}", replace(spec, training=training)


def _more_host_memory(known: int | None) -> Kind:
    def changes(spec: Spec) -> Iterator[Change]:
        size = known
        while size is not None and size < MOST_HOST_MEMORY:
            size *= 2
            changed = replace(spec, hardware=replace(spec.hardware, host_memory=size))
            yield f"hardware.host_memory {format_bytes(size)}", changed

    return changes


def _more_gpus(gpus_per_node: int) -> Kind:
    def changes(spec: Spec) -> Iterator[Change]:
        count = gpus_per_node
        while spec.hardware.node is None and count < MOST_GPUS_PER_NODE:  # what a node preset holds is fixed
            count = min(2 * count, MOST_GPUS_PER_NODE)
            hardware = replace(spec.hardware, gpus_per_node=count)
            yield f"hardware.gpus_per_node {count}", replace(spec, hardware=hardware)

    return changes


def _more_nodes(spec: Spec) -> Iterator[Change]:
    nodes = spec.hardware.nodes
    while nodes < MOST_NODES:
        nodes *= 2
        yield f"hardware.nodes {nodes}", replace(spec, hardware=replace(spec.hardware, nodes=nodes))
