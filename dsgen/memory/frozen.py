"""Bytes of weights as torch's own frameworks store them: trained ones in their type, frozen ones in 16 bit or
quantised."""

from dsgen.facts.quantizations import quantizations
from dsgen.memory.derived import derived
from dsgen.memory.layers import per_layer
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.values import Block, Tensor


def trained_width(setting: Setting) -> int:
    """Bytes of one trained weight, its gradient and each of its states: those of the compute type, or 4."""
    return setting.width if setting.training.code.weights_in_compute_type else FP32


def quantized(setting: Setting, tensor: Tensor) -> bool:
    """Frozen matrices of the blocks, adapters' own apart: what bitsandbytes and GPTQ layers replace. litgpt replaces
    the output head too (its precision plugin takes every nn.Linear), transformers keeps it."""
    if setting.training.method.quantization is None or tensor.trainable or len(tensor.shape) != 2:
        return False
    if tensor.name.startswith("embed_"):
        return False
    return not tensor.name.startswith("lm_head") or setting.training.code.library == "litgpt"


def stored(setting: Setting, tensor: Tensor) -> float:
    """Bytes of one tensor at rest; DeepSpeed keeps trained ones in the compute type, and their masters apart."""
    if tensor.trainable:
        return _kept_width(setting) * tensor.numel
    if quantized(setting, tensor):
        name = setting.training.method.quantization
        assert name is not None
        return quantizations()[name].width * tensor.numel
    return setting.width * tensor.numel


def blocks_stored(setting: Setting) -> list[float]:
    """Bytes of each block at rest."""

    def work() -> list[float]:
        return per_layer(setting.shapes, lambda block: sum(stored(setting, tensor) for tensor in block.tensors))

    return derived(setting.shapes, ("blocks stored", *_reads(setting)), work)


def outside_stored(setting: Setting) -> float:
    """Bytes at rest of what is outside the blocks."""

    def work() -> float:
        return sum(stored(setting, tensor) for tensor in setting.shapes.outside)

    return derived(setting.shapes, ("outside stored", *_reads(setting)), work)


def _reads(setting: Setting) -> tuple[object, ...]:
    """What decides the bytes of a tensor."""
    training = setting.training
    code = training.code
    return setting.width, _kept_width(setting), training.method.quantization, code.library


def _kept_width(setting: Setting) -> int:
    return setting.width if setting.target.format == "deepspeed" else trained_width(setting)


def dequantized(setting: Setting, block: Block) -> int:
    """One quantised matrix is rebuilt while it is used: the largest of ``block``, c each (bitsandbytes
    functional.py:dequantize_4bit). litgpt, which quantises the output head too, holds 4 + c, as if it were rebuilt in
    fp32 and cast. That is measured, not derived: of eleven public runs in two sources nine ask for 4.2 to 8.3 bytes of
    each element of the head, in either source about 6; the other two, with the smallest heads, for more.
    """
    if setting.training.method.quantization is None:
        return 0
    width = setting.width + (FP32 if setting.training.code.library == "litgpt" and setting.mixed else 0)
    return width * max((tensor.numel for tensor in block.tensors if quantized(setting, tensor)), default=0)
