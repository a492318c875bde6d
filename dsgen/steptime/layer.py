"""One linear layer: y = x W^T forwards, the gradients of x and of W backwards."""

from dsgen.facts.constants import constant
from dsgen.steptime.cost import Cost
from dsgen.steptime.matmul import product
from dsgen.steptime.setting import FP32, Setting


def layer_of(setting: Setting, tokens: float, out: float, width: float, *, trained: bool) -> Cost:
    """A linear layer's three products; in fp8 also what makes operands of 8 bits (:func:`_casts`)."""
    machine, c = setting.machine, setting.width
    eight = setting.training.code.eight_bit
    rate = machine.products
    if eight:
        rate = machine.eight_bit * (constant("rowwise_fp8") if eight == "rowwise" else 1.0)
    forward = product(machine, tokens, out, width, c, rate)
    backward = product(machine, tokens, width, out, c, rate)
    if trained:
        backward += product(machine, out, width, tokens, c, rate)
    cost = Cost(forward, backward, 1, 2 if trained else 1)
    if eight:
        cost += _casts(setting, tokens, out, width)
    if trained and setting.casts_weights:
        # Autocast: a weight of fp32 is read and written in 16 bits for each pass that uses it, its gradient cast back.
        moved = (c + FP32) * out * width / machine.memory
        cost += Cost(moved, moved, 1, 1)
    return cost


_CASTS = {"tensorwise": (6.0, 8.0, 6.0), "rowwise": (8.0, 10.0, 8.0), "mx": (6.0, 6.0, 6.0)}
"""Bytes moved for each element of input, weight and output gradient (torchao/testing/training/roofline_utils.py)."""


def _casts(setting: Setting, tokens: float, out: float, width: float) -> Cost:
    """Operands of fp8: tensorwise, an element is read for the largest value (2 bytes), read again and written row- and
    column-major (2 + 1 + 1, of weights in two kernels 3 + 3); rowwise also copied column-major. Compiled code and
    Transformer Engine read inputs and gradients with the kernel that makes them, 2 bytes less; the latter casts weights
    once a step, not with every micro-batch."""
    given, weight, gradient = _CASTS[setting.training.code.eight_bit]
    saved = 2 if setting.training.compile or setting.megatron else 0
    weight /= setting.plan.accumulation if setting.megatron else 1
    rate = setting.machine.memory
    forward = ((given - saved) * tokens * width + weight * out * width) / rate
    kernels = 2 if setting.training.compile else 6
    return Cost(forward, (gradient - saved) * tokens * out / rate, kernels, kernels / 2)
