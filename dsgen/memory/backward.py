"""The backward pass: the points at which memory may be largest, each as parts beside those that are always there."""

from collections.abc import Iterator

from dsgen.memory import gradients
from dsgen.memory.activations.checkpointed import LayerActivations
from dsgen.memory.buffers import Buffers
from dsgen.memory.gathered import Gathered
from dsgen.memory.layers import per_layer
from dsgen.memory.ledger import Part
from dsgen.memory.setting import Setting
from dsgen.memory.temporaries import backward_temporaries
from dsgen.shapes.values import Block

Parts = dict[Part, int]


def blocks(
    setting: Setting, layers: list[LayerActivations], outside: int, buffers: Buffers, gathered: Gathered
) -> Parts:
    """The worst of all blocks' backward passes.

    While block n runs backwards there are: activations of the blocks up to it; what is recomputed of it and its
    transients; gradients of what lies behind it and its own; what stage 3 has gathered; buckets.
    """
    every = setting.shapes.blocks
    largest = per_layer(every, _largest_trainable)
    computed = sum(tensor.numel for tensor in setting.shapes.outside if tensor.trainable)
    kept = sum(layer.kept for layer in layers) + outside
    reduces = gradients.reduces_early(setting)
    working = buffers.always + buffers.backward + (buffers.reducing if reduces else 0)
    worst: Parts = {}
    size_of_worst = -1
    for index in range(len(every) - 1, -1, -1):
        layer = layers[index]
        computed += every[index].trainable
        grads = gradients.inside_backward(setting, computed, largest[index])
        live = gathered.at_block(index)
        temporary = backward_temporaries(setting, largest[index]) if reduces else 0
        size = kept + layer.extra + grads + live + temporary
        if size > size_of_worst:
            size_of_worst = size
            worst = {
                "gradients": grads,
                "gathered_parameters": live,
                "activations": kept + layer.extra,
                "buffers": working,
                "temporaries": temporary,
            }
        kept -= layer.kept
    return worst


def _largest_trainable(block: Block) -> int:
    return max((tensor.numel for tensor in block.tensors if tensor.trainable), default=0)


def reduction(setting: Setting, buffers: Buffers, gathered: Gathered) -> Parts:
    """The end: no activation is left, the last gradients (those of the embedding) are reduced."""
    largest = max((tensor.numel for tensor in setting.shapes.outside if tensor.trainable), default=0)
    if setting.stage == 1 and not gradients.reduces_early(setting):
        grads = gradients.reducing(setting)
    else:
        grads = gradients.inside_backward(setting, setting.trainable, largest)
    return {
        "gradients": grads,
        "gathered_parameters": gathered.persistent,
        "buffers": buffers.always + buffers.backward + buffers.reducing,
        "temporaries": backward_temporaries(setting, max(largest, _largest_in_blocks(setting))),
    }


def _largest_in_blocks(setting: Setting) -> int:
    return max(per_layer(setting.shapes.blocks, _largest_trainable), default=0)


def candidates(
    setting: Setting, layers: list[LayerActivations], outside: int, buffers: Buffers, gathered: Gathered
) -> Iterator[Parts]:
    """Both points at which the backward pass may be largest once the loss is behind."""
    yield blocks(setting, layers, outside, buffers, gathered)
    yield reduction(setting, buffers, gathered)
