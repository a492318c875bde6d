"""The core of attention: softmax(q k^T / sqrt d) v, over b sequences of s tokens.

Symbols: a heads of width d, c bytes of an element. Tensor-parallel, context-parallel and Ulysses ranks share it evenly
(context parallelism in the balanced, zigzag order).
"""

from dsgen.facts.constants import constant
from dsgen.steptime.cost import Cost
from dsgen.steptime.matmul import product
from dsgen.steptime.setting import FP32, Setting
from dsgen.steptime.traffic import has_dropout

_FULL_EVERY = {
    "GPTNeoForCausalLM": 2,
    "Gemma2ForCausalLM": 2,
    "Gemma3ForCausalLM": 6,
    "Gemma3ForConditionalGeneration": 6,
    "GptOssForCausalLM": 2,
    "Llama4ForConditionalGeneration": 4,
}
"""Classes of which one layer in so many looks at the whole sequence, the others through a window: layer_types of
transformers' configurations (gemma2, gemma3, gpt_oss, llama4), attention_types of gpt_neo. Elsewhere all have one."""


def core(setting: Setting) -> Cost:
    """Forward and backward pass of one layer."""
    if setting.training.attention == "eager":
        return _eager(setting)
    return _flash(setting)


def pairs(setting: Setting) -> float:
    """Query-key pairs of one rank and head: b s^2 / (c u), of which a causal mask leaves half; a window of w leaves
    s w - w^2 / 2. Encoders look both ways. Where only some layers have a window, the mean of all."""
    s, plan = setting.sequence_length, setting.plan
    each = s * s / 2 if _causal(setting) else s * s
    window = setting.arch.sliding_window
    if window is not None and window < s:
        every = _FULL_EVERY.get(setting.arch.hf_architecture)
        whole = 0.0 if every is None else (setting.arch.layers // every) / setting.arch.layers
        each = whole * each + (1 - whole) * min(each, s * window - window * window / 2)
    return plan.micro_batch * each / (plan.context_parallel * plan.ulysses)


def _causal(setting: Setting) -> bool:
    return not setting.arch.hf_architecture.startswith("Bert")


def widths(setting: Setting) -> tuple[float, float]:
    """Features of a query or key, and of a value, over all heads of one rank."""
    arch, mla = setting.arch, setting.arch.mla
    heads = arch.heads / setting.tensor
    if mla is not None:
        return heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim), heads * mla.v_head_dim
    return heads * arch.head_dim, heads * arch.head_dim


def _flash(setting: Setting) -> Cost:
    """One kernel each way: 2 d + 2 d FLOPs for each pair forwards; five products instead of two backwards, since the
    scores are computed again (FlashAttention-2, arXiv 2307.08691, section 3.1). Rates of machine_of; Transformer Engine
    picks cuDNN's kernel, where results need not be the same in every run. Its tensors are
    read and written once: c T (2 q + 2 k)."""
    machine, keys_values = setting.machine, widths(setting)
    older = constant("first_flash") if setting.training.code.first_flash else 1.0
    forward, backward = machine.flash_forward * older, machine.flash_backward * older
    if setting.megatron and not setting.training.code.deterministic:
        forward, backward = machine.native_forward, machine.native_backward
    pass_ = 2 * pairs(setting) * sum(keys_values)
    moved = setting.width * setting.tokens * 2 * sum(keys_values) / machine.memory
    return Cost(
        max(pass_ / forward, moved),
        max(2.5 * pass_ / backward, 2 * moved),
        1,
        3,
    )


def _eager(setting: Setting) -> Cost:
    """All scores are made, masked pairs too: two products forwards, four backwards, and between them passes over the
    scores (:func:`passes`). transformers also copies keys and values to all heads, c (2 k + 2 q), and the output,
    2 c q; backwards 4 c q."""
    machine, c, plan, arch = setting.machine, setting.width, setting.plan, setting.arch
    s = setting.sequence_length
    batch = plan.micro_batch * arch.heads / setting.tensor / (plan.context_parallel * plan.ulysses)
    d = sum(widths(setting)) / 2 * setting.tensor / arch.heads
    one = batch * product(machine, s, s, d, c, machine.products)
    other = batch * product(machine, s, d, s, c, machine.products)
    scores = batch * s * s / machine.memory
    forward, backward, kernels = passes(setting)
    copied = there = 0.0
    if not (setting.megatron or setting.training.compile):
        q, k = (heads / setting.tensor * d for heads in (arch.heads, arch.kv_heads))
        there = c * (2 * q + (2 * k + 2 * q) * (arch.kv_heads < arch.heads)) * setting.tokens / machine.memory
        copied = 4 * c * q * setting.tokens / machine.memory
    return Cost(
        one + other + forward * scores + there,
        2 * (one + other) + backward * scores + copied,
        2 + kernels,
        4 + kernels,
    )


def passes(setting: Setting) -> tuple[float, float, int]:
    """Bytes for each score, forwards and backwards, and kernels.

    - Megatron's fused softmax (scale, mask, softmax), and compiled code: read and write, 2 c; backwards 3 c.
    - transformers: scale 2 c, mask 2 c, softmax 2 c; backwards 3 c and 2 c. Models that take the softmax in fp32: it
      writes 4 bytes, which are cast, c + 4 and 4 + c; backwards cast 4 + c, softmax 8 + c, scale 2 c.
    - Dropout: 2 c and a mask of one byte, each way.
    """
    c = setting.width
    drop = (2 * c + 1) if has_dropout(setting) else 0
    if setting.megatron or setting.training.compile:
        return 2 * c + drop, 3 * c + drop, 2
    if setting.arch.gated and c < FP32:
        return 4 * c + 2 * (c + FP32) + drop, 4 * c + 3 * FP32 + drop, 6
    return 6 * c + drop, 5 * c + drop, 5
