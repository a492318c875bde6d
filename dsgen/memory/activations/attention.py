"""Attention: grouped-query (multi-head and multi-query are its ends) and multi-head latent.

Symbols: h hidden, a heads, d head_dim, q = a d, k = kv_heads d, s sequence length, c bytes of a compute
element. All bytes are per token.
"""

from dsgen.memory.activations.norms import norm
from dsgen.memory.activations.saved import Layer, Saved
from dsgen.shapes.values import Mla

_FP32 = 4
_MASK = 1
"""Bytes of one element of a dropout mask."""


def attention(layer: Layer) -> Saved:
    """All of it but the norm before: projections, core, output projection."""
    mla = layer.arch.mla
    return _latent(layer, mla) if mla is not None else _grouped_query(layer)


def _grouped_query(layer: Layer) -> Saved:
    """Projections keep c (q + 2 k): q and k after the rotary embedding, v as projected; the values
    before the rotation are not needed (it is linear with constant factors), but a fused projection keeps them
    alive, c (q + k), unless eager attention copies v.

    Output projection: its input, the core's output, c q, counted in the core. With dropout a mask of h.
    """
    arch, c = layer.arch, layer.width
    q, k = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    # Ulysses gives each rank some heads of the whole sequence; where ranks outnumber the heads of keys and values, each
    # of these goes to several.
    k_held = k * max(1.0, layer.ulysses / arch.kv_heads)
    kept = float(c * (3 * q if layer.kernels.expanded_kv else q + 2 * k_held))
    kept += layer.adapters(arch.hidden, "q_proj", "k_proj", "v_proj") + layer.adapters(q, "o_proj")
    outputs = c * (q + 2 * k + arch.hidden)
    if layer.kernels.dropout:
        kept += _MASK * arch.hidden
    if layer.kernels.fused_qkv and layer.attention != "eager":
        kept += c * (q + k)
    saved = Saved(kept, outputs)
    if arch.qk_norm is not None:
        # The rotation makes a new tensor of the normalised q and k, so their norm's output is not kept.
        q_heads, k_heads = (arch.heads, arch.kv_heads) if arch.qk_norm == "head" else (1, 1)
        saved += norm(layer, q, "q_norm", output_needed=False, heads=q_heads)
        saved += norm(layer, k, "k_norm", output_needed=False, heads=k_heads)
    return saved + _core(layer, keys=q, values=q, repeated=0 if layer.kernels.expanded_kv else q - k)


def _core(layer: Layer, *, keys: float, values: float, repeated: float) -> Saved:
    """softmax(q k^T / sqrt d) v, without q, k and v themselves.

    - flash and sdpa: output c values, log of the softmax's denominator 4 a.
      sdpa stands for its flash or memory-efficient kernel; the mathematical fallback keeps what eager keeps.
      Backward transient: gradients of q, k, v and of the output, c (2 keys + 2 values); flash adds up the gradient of
      q in fp32, 4 keys (flash_api.cpp:mha_bwd, dq_accum).
    - eager: k and v repeated to all heads 2 c repeated (transformers' repeat_kv), probabilities c a s, output
      c values. Models that take the softmax in fp32 keep it in fp32 too, 4 a s; a soft cap keeps its tanh, c a s.
      With dropout a mask a s and the dropped probabilities c a s. Backward transient: the gradients
      of the probabilities and of the scores in the softmax's type, 2 c a s or 8 a s, where the 16-bit copy of
      the probabilities, c a s, has gone by then.

    Shapes: scores (b, a, s, s). Source: Korthikanti et al., arXiv 2205.05198, section 4.1:
    5 a s for 16 bit with dropout = 2 a s + a s + 2 a s; transformers 5.24 eager_attention_forward.
    """
    arch, c = layer.arch, layer.width
    output = c * values
    if layer.attention != "eager":
        # What comes back from the other ranks is another tensor than what the core gave.
        copies = layer.kernels.query_concatenated or layer.ulysses > 1
        copied = output if copies and layer.reads("o_proj") else 0
        transient = c * (2 * keys + 2 * values) + (_FP32 * keys if layer.attention == "flash" else 0)
        return Saved(copied + output + _FP32 * arch.heads, output + _FP32 * arch.heads, transient)
    scores = arch.heads * layer.sequence_length
    kept = (output if layer.reads("o_proj") else 0) + 2 * c * repeated + c * scores
    transient = 2 * c * scores
    if layer.kernels.softmax_in_fp32 and c < _FP32:
        kept += _FP32 * scores
        transient = (2 * _FP32 - c) * scores
    if layer.kernels.softcap:
        kept += c * scores
    if layer.kernels.dropout:
        kept += (_MASK + c) * scores
    return Saved(kept, output, transient)


def _latent(layer: Layer, mla: Mla) -> Saved:
    """Multi-head latent attention (arXiv 2405.04434) as transformers runs it: keys and values are rebuilt
    for all heads, so the core sees a heads of d_qk and d_v.

    Keeps: query latent r_q with its norm, key-value latent r_kv with its norm, q and k of a d_qk each
    (both concatenated anew after the rotation), the rebuilt a (d_nope + d_v) of which v is a view, core.
    """
    arch, c = layer.arch, layer.width
    d_qk = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    qk, v = arch.heads * d_qk, arch.heads * mla.v_head_dim
    rebuilt = arch.heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    # Eager attention copies v out of what is rebuilt, and keeps the copy alone.
    kept = float(c * (2 * qk + (v if layer.attention == "eager" else rebuilt))) + layer.adapters(
        arch.hidden, "q_proj", "q_a_proj", "kv_a_proj_with_mqa"
    )
    kept += layer.adapters(mla.q_lora_rank, "q_b_proj") + layer.adapters(mla.kv_lora_rank, "kv_b_proj")
    kept += layer.adapters(v, "o_proj")
    latents = mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_head_dim
    saved = Saved(kept, c * (qk + rebuilt + latents + arch.hidden))
    if mla.q_lora_rank:
        saved += norm(layer, mla.q_lora_rank, "q_a_layernorm", output_needed=layer.reads("q_b_proj"))
    saved += norm(layer, mla.kv_lora_rank, "kv_a_layernorm", output_needed=layer.reads("kv_b_proj"))
    return saved + _core(layer, keys=qk, values=v, repeated=0)
