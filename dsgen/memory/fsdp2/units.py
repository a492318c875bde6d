"""Sizes of the units that FSDP2 gathers and reduces as one: every block, and the root with what is outside.

Read in torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param.py: a tensor is cut along its first dimension into N
equal rows, the last padded, so a rank holds ceil(d0 / N) rows of it and a gathered one has N times as many.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import ceil

from dsgen.memory.derived import derived
from dsgen.memory.layers import per_layer
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Shapes, Tensor


@dataclass(frozen=True, slots=True)
class Unit:
    """Elements of one unit on the fullest rank."""

    shard: int
    """All parameters, cut: sum of ceil(d0 / N) x rest."""
    trainable_shard: int
    whole: int
    """All parameters, gathered: N times the shard."""
    trainable: int
    """Those that get gradients, gathered."""


def unit(tensors: Iterable[Tensor], shards: int, tensor_parallel: int = 1) -> Unit:
    """The unit of these tensors; tensor-parallel ranks hold a part each, which is sharded and gathered by itself."""
    cut = [(tensor, _cut(tensor, shards * tensor_parallel)) for tensor in tensors]
    shard = sum(elements for _, elements in cut)
    trained = sum(elements for tensor, elements in cut if tensor.trainable)
    return Unit(shard, trained, shard * shards, trained * shards)


def _cut(tensor: Tensor, shards: int) -> int:
    return ceil(tensor.shape[0] / shards) * (tensor.numel // tensor.shape[0])


NOTHING = Unit(0, 0, 0, 0)


@dataclass(frozen=True)
class ModelUnits:
    """All units of a model."""

    blocks: tuple[Unit, ...]
    root: Unit
    """What is outside the blocks: all of it, or, where the embedding is apart, the last norm and the output head."""
    embedding: Unit = NOTHING
    """Where it is a unit of its own."""

    @cached_property
    def shard(self) -> int:
        """Elements of a rank's shard."""
        return self.root.shard + self.embedding.shard + sum(block.shard for block in self.blocks)

    @cached_property
    def trainable_shard(self) -> int:
        """Of these, what is trained."""
        outside = self.root.trainable_shard + self.embedding.trainable_shard
        return outside + sum(block.trainable_shard for block in self.blocks)

    @cached_property
    def trainable(self) -> int:
        """Trained elements of all units, gathered."""
        return self.root.trainable + self.embedding.trainable + sum(block.trainable for block in self.blocks)

    @cached_property
    def largest(self) -> Unit:
        """The largest block; an empty one where there is none."""
        return max(self.blocks, key=lambda block: block.whole, default=NOTHING)

    @cached_property
    def whole_upto(self) -> list[int]:
        """Elements of each block and those before it, gathered."""
        return list(accumulate(block.whole for block in self.blocks))

    @cached_property
    def trainable_behind(self) -> list[Unit]:
        """Sums over the blocks behind each."""
        sums = [NOTHING]
        for block in reversed(self.blocks):
            last = sums[-1]
            sums.append(
                Unit(
                    last.shard + block.shard,
                    last.trainable_shard + block.trainable_shard,
                    last.whole + block.whole,
                    last.trainable + block.trainable,
                )
            )
        return sums[-2::-1]


def units_of(setting: Setting) -> ModelUnits:
    """The units of ``setting``'s model, cut over its shards."""
    shards, ranks, shapes = setting.shards, setting.plan.tensor_parallel, setting.shapes
    apart = setting.training.code.embedding_apart and not shapes.architecture.tied
    return derived(shapes, ("units", shards, ranks, apart), lambda: _units(shapes, shards, ranks, apart))


def _units(shapes: Shapes, shards: int, ranks: int, apart: bool) -> ModelUnits:
    blocks = tuple(per_layer(shapes, lambda block: unit(block.tensors, shards, ranks)))
    if not apart:
        return ModelUnits(blocks, unit(shapes.outside, shards, ranks))
    embedding = [tensor for tensor in shapes.outside if tensor.name.startswith("embed_")]
    head = [tensor for tensor in shapes.outside if not tensor.name.startswith("embed_")]
    return ModelUnits(blocks, unit(head, shards, ranks), unit(embedding, shards, ranks))
