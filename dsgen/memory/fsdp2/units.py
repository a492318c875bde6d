"""Sizes of the units that FSDP2 gathers and reduces as one: every block, and the root with what is outside.

Read in torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param.py: a tensor is cut along its first dimension into N
equal rows, the last padded, so a rank holds ceil(d0 / N) rows of it and a gathered one has N times as many.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from dsgen.memory.layers import per_layer
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Tensor


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


@dataclass(frozen=True, slots=True)
class ModelUnits:
    """All units of a model."""

    blocks: tuple[Unit, ...]
    root: Unit

    @property
    def shard(self) -> int:
        return self.root.shard + sum(block.shard for block in self.blocks)

    @property
    def trainable_shard(self) -> int:
        return self.root.trainable_shard + sum(block.trainable_shard for block in self.blocks)

    @property
    def trainable(self) -> int:
        return self.root.trainable + sum(block.trainable for block in self.blocks)


def units_of(setting: Setting) -> ModelUnits:
    """The units of ``setting``'s model, cut over its shards."""
    shards, ranks = setting.shards, setting.plan.tensor_parallel
    blocks = per_layer(setting.shapes.blocks, lambda block: unit(block.tensors, shards, ranks))
    return ModelUnits(tuple(blocks), unit(setting.shapes.outside, shards, ranks))
