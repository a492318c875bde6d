"""The moments of a step of plain torch on one GPU, alone or under DistributedDataParallel; tensors only.

Symbols: T trained parameters, w bytes of one trained weight, its gradient and each state (frozen.py:trained_width),
o states per parameter (Adam 2), c bytes of a compute element.
"""

from collections.abc import Iterable, Iterator

from dsgen.memory import frozen
from dsgen.memory.activations.checkpointed import LayerActivations, activations
from dsgen.memory.ledger import Moment
from dsgen.memory.logits import around_the_blocks, logits
from dsgen.memory.parts import Parts, largest, moment
from dsgen.memory.plain.step import step_temporaries
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.values import Tensor


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
        "gathered_parameters": _casts(setting) + dequantized(setting, setting.shapes.outside),
        "activations": sum(layer.kept for layer in layers) + outside,
    }
    behind = (always | parts for parts in _backward(setting, layers, resident))
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
    tensors = [tensor for block in setting.shapes.blocks for tensor in block.tensors] + list(setting.shapes.outside)
    return setting.width * sum(t.numel for t in tensors if t.trainable and len(t.shape) == 2)


def _backward(setting: Setting, layers: list[LayerActivations], resident: int) -> Iterator[Parts]:
    """Every block's backward pass."""
    w = frozen.trained_width(setting)
    early = setting.training.optimizer.step == "in_backward"
    kept = sum(layer.kept for layer in layers)
    computed = sum(tensor.numel for tensor in setting.shapes.outside if tensor.trainable and tensor.name != _EMBEDDING)
    for index in range(len(layers) - 1, -1, -1):
        block = setting.shapes.blocks[index]
        computed = block.trainable if early else computed + block.trainable
        yield {
            "gradients": max(resident, w * computed),
            "activations": kept + layers[index].extra,
            "gathered_parameters": dequantized(setting, block.tensors),
        }
        kept -= layers[index].kept


_EMBEDDING = "embed_tokens.weight"


def dequantized(setting: Setting, tensors: Iterable[Tensor]) -> int:
    """One quantised matrix is rebuilt while it is used: the largest of ``tensors``, c each (bitsandbytes
    functional.py:dequantize_4bit). litgpt, which quantises the output head too, holds 4 + c, as if it were rebuilt in
    fp32 and cast. That is measured, not derived: of eleven public runs in two sources nine ask for 4.2 to 8.3 bytes of
    each element of the head, in either source about 6; the other two, with the smallest heads, for more.
    """
    width = setting.width + (FP32 if setting.training.code.library == "litgpt" and setting.mixed else 0)
    return width * max((tensor.numel for tensor in tensors if frozen.quantized(setting, tensor)), default=0)
