"""The moments of a step of plain torch on one GPU, alone or under DistributedDataParallel; tensors only.

Symbols: T trained parameters, w bytes of one trained weight, its gradient and each state (frozen.py:trained_width),
o states per parameter (Adam 2), c bytes of a compute element.
"""

from collections.abc import Iterator

from dsgen.memory import frozen
from dsgen.memory.activations.checkpointed import Activations, activations
from dsgen.memory.activations.points import points
from dsgen.memory.backward import EMBEDDING, computed_from
from dsgen.memory.derived import derived
from dsgen.memory.layers import per_layer, turning_points
from dsgen.memory.ledger import Moment
from dsgen.memory.logits import around_the_blocks, held, logits
from dsgen.memory.parts import Parts, largest, moment
from dsgen.memory.plain.step import step_temporaries
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.values import Block


def moments(setting: Setting) -> tuple[Moment, ...]:
    """End of forward, backward, optimizer step.

    - Always: weights as stored; states w o T; under DDP buckets of all gradients, w T, whose slices the gradients are
      not (gradient_as_bucket_view is off by default).
    - Under autocast, and where weights are fp32 and the compute type is not: casts of the matrices, c each, from their
      first use in the forward pass to their backward pass (torch/csrc/autograd: linear saves its weight).
    - Gradients w T from the first micro-batch on where they accumulate, else as the backward pass makes them; none
      between backward and step where each parameter steps as soon as its gradient is there.
    """
    w, trainable = frozen.trained_width(setting), setting.trainable
    states = setting.optimizer.state_size(w, setting.training.optimizer.momentum)
    gradients = 0 if setting.training.optimizer.step == "in_backward" else w * trainable
    always: Parts = {
        "parameters": round(sum(frozen.blocks_stored(setting)) + frozen.outside_stored(setting)),
        "optimizer_states": round(states * trainable),
        "buffers": w * trainable if setting.plan.world_size > 1 else 0,
    }
    layers, outside, loss = activations(setting), around_the_blocks(setting), logits(setting)
    resident = gradients if setting.plan.accumulation > 1 else 0
    turn: Parts = always | {
        "gradients": resident,
        "gathered_parameters": _casts(setting) + frozen.dequantized(setting, setting.shapes.outer),
        "activations": layers.kept + outside,
    }
    behind = (always | parts | {"logits": held(setting)} for parts in _backward(setting, layers, resident))
    step: Parts = always | {"gradients": gradients, "temporaries": step_temporaries(setting, trainable)}
    return (
        moment("end of forward", turn | {"logits": loss.forward}),
        largest("backward", turn | {"logits": loss.backward}, *behind),
        moment("optimizer step", step),
    )


def _casts(setting: Setting) -> int:
    """Casts of trained fp32 matrices, all of which live where the passes meet."""
    if setting.width == FP32 or frozen.trained_width(setting) == setting.width:
        return 0
    shapes = setting.shapes

    def work() -> int:
        return sum(per_layer(shapes, _trained_matrices)) + _trained_matrices(shapes.outer)

    return setting.width * derived(shapes, "trained matrices", work)


def _trained_matrices(block: Block) -> int:
    return sum(tensor.numel for tensor in block.tensors if tensor.trainable and len(tensor.shape) == 2)


def _backward(setting: Setting, activations: Activations, resident: int) -> Iterator[Parts]:
    """Every block's backward pass."""
    w = frozen.trained_width(setting)
    early = setting.training.optimizer.step == "in_backward"
    shapes = setting.shapes
    embedding = sum(tensor.numel for tensor in shapes.outside if tensor.trainable and tensor.name == EMBEDDING)
    computed = computed_from(shapes)
    for index in turning_points(shapes, setting.plan.checkpointing.kind != "every"):
        block = shapes.blocks[index]
        behind = 0 if early else computed[index] - embedding - block.trainable
        for point in points(shapes, index, activations.layers[index]):
            yield {
                "gradients": max(resident, w * (behind + point.gradients)),
                "activations": activations.upto[index] + point.activations,
                "gathered_parameters": frozen.dequantized(setting, block),
            }
