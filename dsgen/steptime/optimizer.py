"""The optimizer step, on the GPU: bound by the memory's bandwidth.

Symbols: n parameters that a rank updates, g bytes of a gradient, m of a master weight and of each state.
"""

from dsgen.facts.optimizers import find_optimizer
from dsgen.steptime.setting import FP32, Setting

_CLIP = 3
"""The norm reads each gradient; scaling reads and writes it."""
_FOREACH_PASSES = 20
"""Elements read or written for each parameter by torch's _multi_tensor_adamw (torch/optim/adamw.py): decay 2, first
moment 3, second 2 and 3, root 2, correction 2, eps 2, update 4."""
_KERNELS_PER_TENSOR = 12
"""Kernels of an optimizer that goes over one parameter after the other (transformers' AdamW, Adafactor)."""


def updated(setting: Setting) -> float:
    """Parameters that one rank updates: T / shards."""
    return setting.trainable / setting.shards


def on_gpu(setting: Setting) -> float:
    """- Fused: gradient g, master m and two states read, the latter written: g + m (1 + 2 s) + m with s states; 28
      bytes for Adam in fp32.
    - foreach: _FOREACH_PASSES of m bytes.
    - Master weights beside those of the compute type: the new ones are written, m + c; 16-bit gradients are cast, c +
      4.
    - Clipping 3 g.
    """
    training = setting.training
    facts = find_optimizer(training.optimizer.type) or find_optimizer("adamw")
    assert facts is not None, "optimizers.csv has a row for adamw"
    m = FP32 if setting.mixed or setting.width == FP32 else setting.width
    state = facts.state_bytes if facts.state_bytes is not None else m
    moved = m + 2 * m + 2 * facts.states * state
    if training.optimizer.step == "foreach" and facts.states == 2 and facts.state_bytes is None:
        moved = _FOREACH_PASSES * m
    # A step in the backward pass comes before the norm of all gradients is known.
    if training.gradient_clipping and training.optimizer.step != "in_backward":
        moved += _CLIP * m
    if setting.mixed and setting.target.format in ("deepspeed", "megatron"):
        moved += (m + setting.width) + (setting.width + m)
    return moved * updated(setting) / setting.machine.memory


def launches(setting: Setting) -> float:
    """Kernels: few for fused and foreach steps, many where each tensor is stepped by itself."""
    tensors = sum(count * sum([tensor.trainable for tensor in block.tensors]) for block, count in setting.kinds)
    tensors += sum([tensor.trainable for tensor in setting.shapes.outside])
    alone = setting.training.optimizer.type == "adafactor"
    return tensors * _KERNELS_PER_TENSOR if alone else tensors / 10
