"""Tensors of one attention: grouped-query (MHA and MQA are its ends) and multi-head latent."""

from collections.abc import Iterator

from dsgen.shapes.linear import linear
from dsgen.shapes.values import Architecture, Mla, Tensor

# Which projections carry a bias, by the value of Architecture.attention_bias.
BIASED = {
    "none": frozenset[str](),
    "all": frozenset(("q_proj", "k_proj", "v_proj", "o_proj")),
    "qkv": frozenset(("q_proj", "k_proj", "v_proj")),
    "o": frozenset(("o_proj",)),
    "qvo": frozenset(("q_proj", "v_proj", "o_proj")),
}


def attention(arch: Architecture) -> Iterator[Tensor]:
    """All tensors under ``self_attn``."""
    if arch.mla is not None:
        yield from _latent(arch, arch.mla)
    else:
        yield from _grouped_query(arch)
    if arch.extra.get("sinks") == "1":
        yield Tensor("self_attn.sinks", (arch.heads,))


def _grouped_query(arch: Architecture) -> Iterator[Tensor]:
    """2 hq + 2 hk weights with q = heads x head_dim, k = kv_heads x head_dim; biases q + 2k (+ h)."""
    q, k = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    biased = BIASED[arch.attention_bias]
    for name, out, width in (
        ("q_proj", q, arch.hidden),
        ("k_proj", k, arch.hidden),
        ("v_proj", k, arch.hidden),
        ("o_proj", arch.hidden, q),
    ):
        yield from linear(f"self_attn.{name}", out, width, bias=name in biased)
    if arch.qk_norm is not None:
        per_head = arch.qk_norm == "head"
        yield Tensor("self_attn.q_norm.weight", (arch.head_dim if per_head else q,))
        yield Tensor("self_attn.k_norm.weight", (arch.head_dim if per_head else k,))


def _latent(arch: Architecture, mla: Mla) -> Iterator[Tensor]:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values are
    rebuilt from one latent vector of kv_lora_rank, the rotary part of the key is shared by all heads."""
    h, heads = arch.hidden, arch.heads
    qk = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    bias = arch.attention_bias == "all"
    if mla.q_lora_rank:
        yield from linear("self_attn.q_a_proj", mla.q_lora_rank, h, bias=bias)
        yield Tensor("self_attn.q_a_layernorm.weight", (mla.q_lora_rank,))
        yield from linear("self_attn.q_b_proj", heads * qk, mla.q_lora_rank)
    else:
        yield from linear("self_attn.q_proj", heads * qk, h)
    yield from linear("self_attn.kv_a_proj_with_mqa", mla.kv_lora_rank + mla.qk_rope_head_dim, h, bias=bias)
    yield Tensor("self_attn.kv_a_layernorm.weight", (mla.kv_lora_rank,))
    yield from linear("self_attn.kv_b_proj", heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank)
    yield from linear("self_attn.o_proj", h, heads * mla.v_head_dim, bias=bias)
