"""How the ranks of a job may be split: over the matrices, the layers, the sequence, or into groups that shard."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from dsgen.hardware import Hardware
from dsgen.plan import Plan, Wishes
from dsgen.shapes.values import Shapes
from dsgen.target import Target


@dataclass(frozen=True, slots=True)
class Ranks:
    """What is not data parallelism; the field names are those of Plan."""

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    ulysses: int = 1
    expert_parallel: int = 1
    shard_group: int | None = None

    @property
    def model(self) -> int:
        """Ranks that work on the same sequences: the data-parallel ranks are the rest."""
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel * self.ulysses


FIELDS = frozenset(Ranks.__slots__)
PLAIN = Ranks()
"""Data parallelism alone."""


def splits_more(plan: Plan) -> bool:
    """Whether the plan needs another dimension than data parallelism over all ranks: a split model or sequence, or a
    second copy of the weights in every node (hpZ)."""
    sizes = (plan.tensor_parallel, plan.pipeline_parallel, plan.context_parallel, plan.ulysses)
    return prod(sizes) > 1 or plan.zeropp.secondary_partition > 1


def kind_of_split(plan: Plan) -> tuple[str, ...]:
    """Which dimensions the plan splits, whatever their sizes; empty for data parallelism alone."""
    sizes = {
        "tensor": plan.tensor_parallel,
        "pipeline": plan.pipeline_parallel,
        "context": plan.context_parallel,
        "ulysses": plan.ulysses,
        "hpz": plan.zeropp.secondary_partition,
        "group": 1 if plan.shard_group is None else 2,
    }
    return tuple(name for name, size in sizes.items() if size > 1)


def rank_splits(wishes: Wishes, hardware: Hardware, shapes: Shapes, target: Target) -> tuple[Ranks, ...]:
    """Every split worth trying, the simplest first; what a wish fixes is held there.

    - Tensor parallelism and Ulysses exchange activations within every layer, so they stay within a node: sizes that
      divide its GPUs, and the heads (what else may stand in the way says the legality table).
    - A smaller shard group (HSDP) is a node: what it saves is traffic between nodes.
    - Pipeline, context and expert parallelism are taken as wished: nothing that dsgen writes has them yet.
    """
    ranks = {
        Ranks(
            tensor_parallel=tensor,
            pipeline_parallel=wishes.pipeline_parallel or 1,
            context_parallel=wishes.context_parallel or 1,
            ulysses=ulysses,
            expert_parallel=wishes.expert_parallel or 1,
            shard_group=group,
        ): None
        for group in _groups(wishes, hardware, target)
        for tensor in _sizes(wishes.tensor_parallel, wishes, hardware, shapes, target)
        for ulysses in _sizes(wishes.ulysses, wishes, hardware, shapes, target)
        if tensor * ulysses <= hardware.gpus_per_node or _as_wished(wishes, tensor, ulysses)
    }
    return tuple(sorted(ranks, key=lambda each: (each.model, each.shard_group is not None, each.ulysses)))


def _as_wished(wishes: Wishes, tensor: int, ulysses: int) -> bool:
    """Whether nothing is split beyond what is wished; otherwise both share the GPUs of one node."""
    return tensor == (wishes.tensor_parallel or 1) and ulysses == (wishes.ulysses or 1)


def _sizes(wished: int | None, wishes: Wishes, hardware: Hardware, shapes: Shapes, target: Target) -> Iterator[int]:
    if wished is not None:
        yield wished
        return
    yield 1
    # A wished group is one of data-parallel ranks: nobody asks for it to have the others share a model.
    if target.format != "deepspeed" or wishes.shard_group is not None:
        return
    heads = shapes.architecture.heads
    for size in range(2, hardware.gpus_per_node + 1):
        if hardware.gpus_per_node % size == 0 and heads % size == 0:
            yield size


def _groups(wishes: Wishes, hardware: Hardware, target: Target) -> Iterator[int | None]:
    yield wishes.shard_group
    if wishes.shard_group is None and target.format == "fsdp2" and hardware.nodes > 1:
        yield hardware.gpus_per_node
