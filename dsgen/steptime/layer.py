"""One linear layer: y = x W^T forwards, the gradients of x and of W backwards."""

from dsgen.steptime.cost import Cost
from dsgen.steptime.matmul import product
from dsgen.steptime.setting import FP32, Setting


def layer_of(setting: Setting, tokens: float, out: float, width: float, *, trained: bool) -> Cost:
    """A linear layer's three products; in fp8 also what makes operands of 8 bits (:func:`_casts`)."""
    machine, c = setting.machine, setting.width
    eight = setting.training.code.eight_bit_products
    rate = machine.eight_bit if eight else machine.products
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


def _casts(setting: Setting, tokens: float, out: float, width: float) -> Cost:
    """Scaling to fp8: each operand is read for its largest value, read again and written in one byte, in the order
    that the product needs it: input and weight forwards; gradient, and the two transposed, backwards. Without compile
    each of these is a kernel of its own.

    Bytes: (2 c + 1) for each element forwards, (2 c + 2) of the gradient and (1 + 1) of input and weight backwards.
    """
    c = setting.width
    rate = setting.machine.memory
    held = tokens * width + out * width
    launches = 2 if setting.training.compile else 8
    return Cost((2 * c + 1) * held / rate, ((2 * c + 2) * tokens * out + 2 * held) / rate, launches, launches)
