"""Points of a block's backward pass at which memory may be largest: its activations go while its gradients come."""

from dataclasses import dataclass

from dsgen.memory.activations.checkpointed import LayerActivations
from dsgen.memory.derived import derived
from dsgen.shapes.values import Block, Shapes


@dataclass(frozen=True, slots=True)
class Point:
    """One of them."""

    activations: int
    """Bytes beside what the layer keeps."""
    gradients: int
    """Elements of the block's gradients that are there."""


def points(shapes: Shapes, index: int, layer: LayerActivations) -> tuple[Point, ...]:
    """Of block ``index``, which runs backwards from its last operator to its first:

    - at the MLP's activation: all that is recomputed, the transient, and the gradient of the MLP's last matrix;
    - at the MLP's first matrices: the gradients of all, the transient has gone;
    - at the core of attention: what the MLP kept has gone, the output projection's gradient has come;
    - at the projections before that: all gradients.

    Of a mixture of experts all gradients are there from the first expert on, for the experts' weights are stacked.
    """
    last, mlp, core = derived(shapes, "gradients in turn", lambda: [_in_turn(kind) for kind in shapes.kinds])[
        shapes.order[index]
    ]
    first, at_core, at_end = layer.later
    whole = shapes.blocks[index].trainable
    return Point(layer.extra, last), Point(first, mlp), Point(at_core, core), Point(at_end, whole)


def _in_turn(block: Block) -> tuple[int, int, int]:
    """Trained elements of the MLP's last matrix, of the MLP, and of the MLP with the output projection."""
    trained = [tensor for tensor in block.tensors if tensor.trainable]
    mlp = sum(tensor.numel for tensor in trained if tensor.name.startswith("mlp."))
    last = sum(tensor.numel for tensor in trained if tensor.name.startswith("mlp.down_proj."))
    output = sum(tensor.numel for tensor in trained if tensor.name.startswith("self_attn.o_proj."))
    return (mlp if block.is_moe else last), mlp, mlp + output
