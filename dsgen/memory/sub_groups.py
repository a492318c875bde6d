"""How the stage 3 optimizer cuts a rank's shard into groups that it steps one after the other."""

from collections.abc import Iterator
from math import ceil

from dsgen.memory.derived import derived
from dsgen.memory.layers import per_layer
from dsgen.shapes.values import Shapes, Tensor

_LAST = ("norm.", "lm_head.", "project_out.")
"""Tensors outside the blocks that a decoder registers behind them."""


def sub_groups(shapes: Shapes, shards: int, size: int) -> tuple[int, ...]:
    """Elements of each group of one rank.

    Shards of trainable tensors are taken in the model's order; the tensor with which a group reaches ``size``
    closes it (deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups).
    """
    if size >= ceil(shapes.trainable / shards):
        return (ceil(shapes.trainable / shards),)
    return derived(shapes, ("sub_groups", shards, size), lambda: tuple(_cut(shapes, shards, size)))


def _cut(shapes: Shapes, shards: int, size: int) -> list[int]:
    groups: list[int] = []
    filled = 0
    for elements in _shards(shapes, shards):
        filled += elements
        if filled >= size:
            groups.append(filled)
            filled = 0
    return [*groups, filled] if filled else groups


def _shards(shapes: Shapes, shards: int) -> Iterator[int]:
    first = [tensor for tensor in shapes.outside if not tensor.name.startswith(_LAST)]
    last = [tensor for tensor in shapes.outside if tensor.name.startswith(_LAST)]
    yield from _of(first, shards)
    for layer in per_layer(shapes, lambda block: _of(block.tensors, shards)):
        yield from layer
    yield from _of(last, shards)


def _of(tensors: list[Tensor] | tuple[Tensor, ...], shards: int) -> list[int]:
    return [ceil(tensor.numel / shards) for tensor in tensors if tensor.trainable]
