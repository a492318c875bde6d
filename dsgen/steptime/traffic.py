"""What lies between the matrix products: kernels that are bound by the memory's bandwidth.

Each formula gives bytes read and written per token, counted operation by operation as the library runs them; a test
counts the same operations in the libraries themselves. Symbols: c bytes of a compute element, w features of a norm,
q = heads x head_dim, k = kv_heads x head_dim, i intermediate, h hidden.
"""

from typing import NamedTuple

from dsgen.shapes.values import Mla
from dsgen.steptime.cost import Cost
from dsgen.steptime.setting import FP32, Setting


class Bytes(NamedTuple):
    """Per token."""

    forward: float
    backward: float
    forward_kernels: float
    backward_kernels: float


def cost(setting: Setting, bytes_: Bytes, tokens: float) -> Cost:
    """Bytes per token over the memory's rate, and no kernel takes less than kernel_start."""
    rate, start = setting.machine.memory, setting.machine.kernel_start
    return Cost(
        max(bytes_.forward * tokens / rate, bytes_.forward_kernels * start),
        max(bytes_.backward * tokens / rate, bytes_.backward_kernels * start),
        bytes_.forward_kernels,
        bytes_.backward_kernels,
    )


def norm(setting: Setting, width: float, *, trained: bool) -> Bytes:
    """- One kernel (layernorm, Liger, compiled, Transformer Engine): reads x, writes y, 2 c; backwards reads x and the
      gradient and writes one, 3 c.
    - rmsnorm by tensor operations (transformers' LlamaRMSNorm, torch's rms_norm before 2.8), 16 bit: to fp32 (c + 4),
      square 8, mean 4, times 1/rms 8, to c (4 + c), times weight 2 c: 28 + 4 c. Backwards, torch's formulas of these:
      84 without and 92 with the weight's gradient. In fp32 the casts fall away: 28 and 76 or 92.
    """
    c = setting.width
    if setting.norm_is_one_kernel:
        return Bytes(2 * c * width, 3 * c * width, 1, 1)
    if c == FP32:
        return Bytes(28 * width, (92 if trained else 76) * width, 6, 14)
    return Bytes((28 + 4 * c) * width, (92 if trained else 84) * width, 8, 16)


def rope(setting: Setting, rotated: float) -> Bytes:
    """Rotary embedding of ``rotated`` features.

    - By tensor operations (x cos + rotate_half(x) sin): negate c, concatenate 2 c, two products 4 c, sum 3 c: 10 c;
      backwards 16 c (two products, two slices written into zeros, negate, copy, sum).
    - One kernel: 2 c each way.
    """
    c, code = setting.width, setting.training.code
    if setting.training.compile or "norm" in code.fused or setting.megatron:
        return Bytes(2 * c * rotated, 2 * c * rotated, 1, 1)
    return Bytes(10 * c * rotated, 16 * c * rotated, 10, 16)


def activation(setting: Setting, width: float) -> Bytes:
    """Between the MLP's products, per feature of the intermediate width.

    - Gated, by operations: act 2 c and product 3 c; backwards two products 6 c and the activation's 3 c. One kernel: 3
      c and 5 c.
    - GELU as one kernel: 2 c and 3 c. GPT-2's gelu_new by tensor operations in transformers: 18 c and 28 c, which
      are eight and eleven kernels.
    """
    c, code = setting.width, setting.training.code
    fused = setting.training.compile or "mlp" in code.fused or setting.megatron
    if setting.arch.gated:
        return Bytes(3 * c * width, 5 * c * width, 1, 1) if fused else Bytes(5 * c * width, 9 * c * width, 2, 3)
    if _gelu_by_operations(setting) and not fused:
        return Bytes(18 * c * width, 28 * c * width, 8, 11)
    return Bytes(2 * c * width, 3 * c * width, 1, 1)


def _gelu_by_operations(setting: Setting) -> bool:
    """transformers' NewGELUActivation, which GPT-2 alone still has: others name a kernel of torch."""
    arch = setting.arch
    own = arch.hf_architecture == "GPT2LMHeadModel" or setting.shapes.name.lower().startswith("gpt2")
    return own and setting.training.code.library == "transformers"


def residuals(setting: Setting) -> Bytes:
    """Two additions to the residual stream, 3 c h each, and their gradients' sums. The gradients of layers that read
    one tensor (q, k, v; gate, up) are summed: 3 c h for each beyond the first, which compiled code does as it goes on.
    With dropout (before the additions) a mask: 2 c + 1 and 2 c + 1 more each.

    Compiled or Megatron's fused bias, dropout and addition: one kernel each, with the norm that follows 2 c h less.
    """
    c, h = setting.width, setting.arch.hidden
    drop = 2 * (2 * c + 1) * h if has_dropout(setting) else 0
    fused_kernel = setting.training.compile or setting.megatron
    if fused_kernel:
        return Bytes(4 * c * h + drop / (2 * c + 1), 4 * c * h + drop / 2, 2, 2)
    readers = (2 if setting.arch.mla is None and not one_qkv(setting) else 0) + (1 if setting.arch.gated else 0)
    return Bytes(6 * c * h + drop, (6 + 3 * readers) * c * h + drop, 2 + 2 * bool(drop), 2 + readers + bool(drop))


def joined(setting: Setting) -> Bytes:
    """Where query, key and value come out of one product, their gradients are copied into one tensor: 2 c (q + 2 k)."""
    arch, c = setting.arch, setting.width
    if arch.mla is not None or not one_qkv(setting):
        return Bytes(0, 0, 0, 0)
    return Bytes(0, 2 * c * (arch.heads + 2 * arch.kv_heads) * arch.head_dim, 0, 1)


def biases(setting: Setting) -> Bytes:
    """The gradient of each bias is a sum over tokens of the layer's output gradient, read once more."""
    arch, c = setting.arch, setting.width
    q, k = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    read = {"none": 0, "all": q + 2 * k + arch.hidden, "qkv": q + 2 * k, "o": arch.hidden}[arch.attention_bias]
    if arch.mlp_bias:
        read += arch.hidden + arch.intermediate * (2 if arch.gated else 1)
    return Bytes(0, c * read, 0, 4 if read else 0)


def routed(setting: Setting) -> Bytes:
    """Around a mixture's experts: each token is copied to the k that it goes to (2 k c h), and their outputs are
    weighed and added (k c h + c h); backwards as many. The router's softmax over E experts is in fp32: 3 passes of 4
    E."""
    moe, c, h = setting.arch.moe, setting.width, setting.arch.hidden
    if moe is None:
        return Bytes(0, 0, 0, 0)
    moved = (3 * moe.top_k + 1) * c * h + 3 * FP32 * moe.experts
    return Bytes(moved, moved, 8, 10)


def one_qkv(setting: Setting) -> bool:
    """Query, key and value come out of one product."""
    return setting.arch.family in ("gpt2", "mpt", "phi-3", "qwen") or setting.training.code.library in (
        "litgpt",
        "megatron",
        "foundry",
    )


def has_dropout(setting: Setting) -> bool:
    """Residual dropout: as the run says, else as GPT-2 and BERT were published."""
    stated = setting.training.code.dropout
    if stated is not None:
        return stated
    return setting.megatron or (setting.arch.family == "gpt2" and setting.training.code.library == "transformers")


def latent_norms(setting: Setting, mla: Mla, *, trained: bool) -> Cost:
    """Of the query's and the key-value latent, which all tensor-parallel ranks hold."""
    total = cost(setting, norm(setting, mla.kv_lora_rank, trained=trained), setting.tokens)
    if mla.q_lora_rank:
        total += cost(setting, norm(setting, mla.q_lora_rank, trained=trained), setting.tokens)
    return total
