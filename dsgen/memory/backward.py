"""The backward pass: the points at which memory may be largest, each as parts beside those that are always there."""

from collections.abc import Iterator
from itertools import accumulate

from dsgen.memory import gradients
from dsgen.memory.activations.checkpointed import Activations
from dsgen.memory.activations.points import points
from dsgen.memory.buffers import Buffers
from dsgen.memory.derived import derived
from dsgen.memory.gathered import Gathered, stacked
from dsgen.memory.layers import turning_points
from dsgen.memory.ledger import Part
from dsgen.memory.setting import Setting
from dsgen.memory.temporaries import backward_temporaries
from dsgen.shapes.values import Block, Shapes

Parts = dict[Part, int]


def blocks(setting: Setting, activations: Activations, outside: int, buffers: Buffers, gathered: Gathered) -> Parts:
    """The worst of all blocks' backward passes.

    While block n runs backwards there are: activations of the blocks up to it; what is recomputed of it and its
    transients; gradients of what lies behind it and its own; what stage 3 has gathered; buckets.
    """
    every, layers, upto = setting.shapes.blocks, activations.layers, activations.upto
    computed = computed_from(setting.shapes)
    reduces = gradients.reduces_early(setting)
    working = buffers.always + buffers.backward + (buffers.reducing if reduces else 0)
    indices = turning_points(setting.shapes, setting.plan.checkpointing.kind != "every")
    if gathered.first < len(every):
        # Of the layers kept over the turn each has another share of what is gathered and fetched ahead.
        indices = tuple(sorted({*indices, *range(max(gathered.first - 1, 0), len(every))}, reverse=True))
    worst: Parts = {}
    size_of_worst = -1
    # The embedding's gradient comes last, but a tied one's share of the head's is there from the first.
    later = 0 if setting.shapes.architecture.tied else _embedding(setting.shapes)
    for index in indices:
        largest = _in_flight(every[index])
        live = gathered.at_block(index)
        temporary = backward_temporaries(setting, every[index].largest_trainable) if reduces else 0
        for point in points(setting.shapes, index, layers[index]):
            made = computed[index] - later - every[index].trainable + point.gradients
            kept = upto[index] + outside + point.activations
            grads = gradients.inside_backward(setting, made, largest)
            size = kept + grads + live + temporary
            if size > size_of_worst:
                size_of_worst = size
                worst = {
                    "gradients": grads,
                    "gathered_parameters": live,
                    "activations": kept,
                    "buffers": working,
                    "temporaries": temporary,
                }
    return worst


def _in_flight(block: Block) -> int:
    """Elements of the gradients that are there before they are reduced: those of the largest tensor; of stacked experts
    all, which add up until the last has run, and what one of them adds, as large as the stack."""
    trained = block.is_moe and any(
        tensor.trainable for tensor in block.tensors if tensor.name.startswith("mlp.experts.")
    )
    return block.largest_trainable + (stacked(block) if trained else 0)


def _embedding(shapes: Shapes) -> int:
    """Trained elements of the token embedding."""
    return sum(tensor.numel for tensor in shapes.outside if tensor.trainable and tensor.name == EMBEDDING)


EMBEDDING = "embed_tokens.weight"


def computed_from(shapes: Shapes) -> list[int]:
    """Trained elements of what is outside the blocks, and of each block and those behind it."""

    def work() -> list[int]:
        behind = accumulate((block.trainable for block in reversed(shapes.blocks)), initial=shapes.outer.trainable)
        return list(behind)[:0:-1]

    return derived(shapes, "computed from", work)


def reduction(setting: Setting, buffers: Buffers, gathered: Gathered) -> Parts:
    """The end: no activation is left, the last gradients (those of the embedding) are reduced."""
    shapes = setting.shapes
    largest = shapes.outer.largest_trainable
    if setting.stage == 1 and not gradients.reduces_early(setting):
        grads = gradients.reducing(setting)
    else:
        grads = gradients.inside_backward(setting, setting.trainable, largest)
    return {
        "gradients": grads,
        "gathered_parameters": gathered.persistent,
        "buffers": buffers.always + buffers.backward + buffers.reducing,
        "temporaries": backward_temporaries(setting, max(largest, shapes.largest_trainable_block_tensor)),
    }


def candidates(
    setting: Setting, activations: Activations, outside: int, buffers: Buffers, gathered: Gathered
) -> Iterator[Parts]:
    """Both points at which the backward pass may be largest once the loss is behind."""
    if setting.shapes.blocks:
        yield blocks(setting, activations, outside, buffers, gathered)
    yield reduction(setting, buffers, gathered)
