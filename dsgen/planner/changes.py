"""When nothing fits: the smallest single changes of the spec that would help, each one tried."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from dsgen.errors import ProblemsError
from dsgen.planner.refusal import plan_name
from dsgen.planner.values import Decision
from dsgen.spec.values import Method, Spec

# Each kind of change is tried in doubling steps up to these.
MOST_NODES = 64
MOST_GPUS_PER_NODE = 8
LEAST_SEQUENCE = 128


def helpful_changes(
    spec: Spec, sequence_length: int, gpus_per_node: int, decide: Callable[[Spec], Decision]
) -> list[str]:
    """One sentence for each kind of change that makes the job fit, with the smallest step of its kind."""
    found = []
    for kind in (
        _without_wishes(spec),
        _smaller_micro_batch(spec),
        _shorter(spec, sequence_length),
        _low_rank(spec),
        _more_gpus(spec, gpus_per_node),
        _more_nodes(spec),
    ):
        for sentence, changed in kind:
            decision = _fitting(changed, decide)
            if decision is not None:
                found.append(f"{sentence} ({plan_name(decision.chosen.plan)})")
                break
    return found


def _fitting(spec: Spec, decide: Callable[[Spec], Decision]) -> Decision | None:
    try:
        return decide(spec)
    except ProblemsError:
        # This change does not help, or is not possible: the global batch can't be shared by so many, say.
        return None


Change = tuple[str, Spec]


def _without_wishes(spec: Spec) -> Iterator[Change]:
    for key in spec.want:
        yield f"leave want.{key} open", replace(spec, want=_without(spec.want, key))


def _without(want: Mapping[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in want.items() if name != key}


def _smaller_micro_batch(spec: Spec) -> Iterator[Change]:
    size = spec.want.get("micro_batch")
    while isinstance(size, int) and size > 1:
        size //= 2
        # Accumulation follows: only the product with it is what the optimizer sees.
        want = _without(spec.want, "accumulation") | {"micro_batch": size}
        yield f"want.micro_batch {size}", replace(spec, want=want)


def _shorter(spec: Spec, sequence_length: int) -> Iterator[Change]:
    while sequence_length > LEAST_SEQUENCE:
        sequence_length //= 2
        training = replace(spec.training, sequence_length=sequence_length)
        yield f"training.sequence_length {sequence_length}", replace(spec, training=training)


def _low_rank(spec: Spec) -> Iterator[Change]:
    if spec.training.method.type == "full":
        training = replace(spec.training, method=Method(type="lora"))
        yield "training.method {type: lora}", replace(spec, training=training)


def _more_gpus(spec: Spec, gpus_per_node: int) -> Iterator[Change]:
    if spec.hardware.node is not None:  # what a node holds can't be changed
        return
    while gpus_per_node < MOST_GPUS_PER_NODE:
        gpus_per_node = min(2 * gpus_per_node, MOST_GPUS_PER_NODE)
        hardware = replace(spec.hardware, gpus_per_node=gpus_per_node)
        yield f"hardware.gpus_per_node {gpus_per_node}", replace(spec, hardware=hardware)


def _more_nodes(spec: Spec) -> Iterator[Change]:
    nodes = spec.hardware.nodes
    while nodes < MOST_NODES:
        nodes *= 2
        yield f"hardware.nodes {nodes}", replace(spec, hardware=replace(spec.hardware, nodes=nodes))
