"""LoRA's adapters beside a linear layer: two thin products, and what PEFT does around them.

Symbols: T tokens, r rank, w features of the input, o of the output, c bytes of a compute element, a of what the adapter
computes in.
"""

from dsgen.shapes.values import Tensor
from dsgen.steptime.cost import Cost
from dsgen.steptime.matmul import product
from dsgen.steptime.setting import FP32, Setting


def adapter(setting: Setting, tensor: Tensor) -> Cost:
    """lora_A (r, w) or lora_B (o, r): its products, and what comes before A or after B.

    PEFT keeps adapters in fp32 and multiplies in it, unless they are 16 bit or autocast casts them
    (tuners/lora/layer.py:_cast_input_dtype); torch multiplies fp32 without tensor cores (allow_tf32 is off).
    Kernels that fuse adapters into the layer (fms-acceleration's, Unsloth's) leave only the products.
    """
    machine, c = setting.machine, setting.width
    wide = adapters_are_wide(setting)
    a, rate = (FP32, machine.single) if wide else (c, machine.products)
    out, width = tensor.shape
    tokens = setting.tokens
    forward = product(machine, tokens, out, width, a, rate)
    backward = product(machine, tokens, width, out, a, rate) + product(machine, out, width, tokens, a, rate)
    cost = Cost(forward, backward, 1, 2)
    if "norm" in setting.training.code.fused and setting.training.method.quantization:
        return cost
    return cost + (_before(setting, width, wide=wide) if ".lora_A." in tensor.name else _after(setting, out, wide=wide))


def adapters_are_wide(setting: Setting) -> bool:
    """Whether adapters compute in fp32 beside 16-bit layers; DeepSpeed and FSDP2 as dsgen writes them have one type."""
    code = setting.training.code
    if code.weights_in_compute_type or code.autocast or code.library not in ("transformers",):
        return False
    return setting.width < FP32 and setting.target.format in ("ddp", "fsdp1")


def _before(setting: Setting, width: int, *, wide: bool) -> Cost:
    """The input is cast (c + 4, and back for its gradient), dropped (2 a + 1, and 2 a + 1 backwards), and its gradient
    is added to that of the layer, 3 c."""
    c = setting.width
    a = FP32 if wide else c
    drop = (2 * a + 1) if setting.training.method.dropout else 0
    cast = (c + FP32) if wide else 0
    rate = setting.machine.memory / (setting.tokens * width)
    kernels = bool(drop) * 2 + bool(cast)
    return Cost((drop + cast) / rate, (drop + cast + 3 * c) / rate, kernels, kernels + 1)


def _after(setting: Setting, out: int, *, wide: bool) -> Cost:
    """The output is scaled by alpha / r, 2 a, and added to the layer's, a + 2 c (where a is wider, the sum is a too and
    is cast back: a + c + a and a + c); backwards the cast and the scaling."""
    c = setting.width
    rate = setting.machine.memory / (setting.tokens * out)
    if wide:
        return Cost((2 * FP32 + 2 * FP32 + c + FP32 + c) / rate, (c + FP32 + 2 * FP32) / rate, 3, 2)
    if setting.training.compile:
        return Cost(3 * c / rate, 0.0, 1, 0)
    return Cost(5 * c / rate, 2 * c / rate, 2, 1)
