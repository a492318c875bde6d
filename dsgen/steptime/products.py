"""Matrix products: time by shape, and those of the linear layers of one block.

Symbols: a product of (m, k) with (k, n); c bytes of an element; T tokens, t tensor-parallel ranks.
"""

from dsgen.facts.quantizations import quantizations
from dsgen.shapes.values import Block, Tensor
from dsgen.steptime.adapters import adapter
from dsgen.steptime.cost import Cost
from dsgen.steptime.layer import layer_of
from dsgen.steptime.setting import Setting


def linear(setting: Setting, tensor: Tensor) -> Cost:
    """One linear layer of weight (out, in) over the rank's tokens: y = x W^T forwards, the input's gradient, and the
    weight's gradient where it is trained.

    Column-parallel layers have out / t, row-parallel ones in / t; adapters and what is replicated are whole.
    """
    out, width = tensor.shape[-2:]
    layer = tensor.name.rpartition(".")[0].rpartition(".")[2]
    out_here, in_here = _split(setting, layer, out, width)
    return layer_of(setting, setting.tokens, out_here, in_here, trained=tensor.trainable)


_ROW = frozenset(("o_proj", "down_proj"))
_WHOLE = frozenset(("q_a_proj", "kv_a_proj_with_mqa", "gate", "shared_expert_gate", "lora_A", "lora_B"))


def _split(setting: Setting, layer: str, out: int, width: int) -> tuple[float, float]:
    t = setting.tensor
    if t == 1 or layer in _WHOLE:
        return out, width
    return (out, width / t) if layer in _ROW else (out / t, width)


def products(setting: Setting, block: Block, prefix: str) -> Cost:
    """All linear layers of ``block`` whose names start with ``prefix``, adapters and experts included."""
    total = Cost()
    quantized = setting.training.method.quantization
    for tensor in block.tensors:
        if not tensor.name.startswith(prefix):
            continue
        if ".experts." in tensor.name:
            if len(tensor.shape) == 3:
                total += _experts(setting, tensor)
        elif len(tensor.shape) == 2 and tensor.name.endswith(".weight"):
            if ".lora_" in tensor.name:
                total += adapter(setting, tensor)
                continue
            total += linear(setting, tensor)
            if quantized:
                total += _dequantised(setting, tensor, quantized)
    return total


def _experts(setting: Setting, tensor: Tensor) -> Cost:
    """E stacked experts, each over its share of the tokens, T k / E; expert-parallel ranks hold E / e of them, and get
    the tokens of all e ranks. One grouped kernel, so waves and operands are those of all."""
    moe = setting.arch.moe
    assert moe is not None, "only mixtures have stacked experts"
    experts, out, width = tensor.shape
    local = max(1.0, experts / setting.plan.expert_parallel)
    each = setting.tokens * moe.top_k * setting.plan.expert_parallel / experts
    out_here, in_here = _split(setting, tensor.name.rpartition(".")[2], out, width)
    one = layer_of(setting, each, out_here, in_here, trained=tensor.trainable).times(local)
    return Cost(one.forward, one.backward, one.forward_launches / local, one.backward_launches / local)


def _dequantised(setting: Setting, tensor: Tensor, quantized: str) -> Cost:
    """A frozen weight in few bits is unpacked to the compute type before each product that uses it: the forward one and
    that of the input's gradient. Bytes of quantizations.csv (unpack_bytes) for each weight."""
    size = tensor.numel / setting.tensor * quantizations()[quantized].unpack_bytes
    seconds = size / setting.machine.memory
    return Cost(seconds, seconds, 1, 1)
