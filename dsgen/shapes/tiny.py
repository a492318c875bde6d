"""The same family at a size that trains on a CPU in milliseconds."""

from dataclasses import replace

from dsgen.shapes.values import Architecture, Mla, Moe

HIDDEN = 64
HEADS = 4
HEAD_DIM = 16
VOCAB = 256
POSITIONS = 128
WINDOW = 32


def tiny(arch: Architecture) -> Architecture:
    """A small decoder in which everything that ``arch`` does still happens.

    Kept: gate, activation, norms, biases, positions, tying, q/k norms, switches. Grouped heads stay
    grouped and one shared head stays one; a query wider than the residual stream stays wider; a layer
    with experts follows a dense one where the original has both. Lengths of more than POSITIONS
    tokens are beyond it.
    """
    moe = _moe(arch.moe) if arch.moe is not None else None
    mla = _mla(arch.mla) if arch.mla is not None else None
    wide = arch.heads * arch.head_dim > arch.hidden
    head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim if mla else HEAD_DIM * (2 if wide else 1)
    extra = dict(arch.extra)
    if "embed_proj" in extra:
        extra["embed_proj"] = str(HIDDEN // 2)
    return replace(
        arch,
        layers=2 if moe is None else max(2, moe.first_dense_layers + moe.layer_step),
        hidden=HIDDEN,
        heads=HEADS,
        kv_heads=HEADS if arch.kv_heads == arch.heads else min(arch.kv_heads, HEADS // 2),
        head_dim=head_dim,
        intermediate=2 * HIDDEN,
        vocab=VOCAB,
        max_positions=POSITIONS,
        sliding_window=WINDOW if arch.sliding_window is not None else None,
        moe=moe,
        mla=mla,
        extra=extra,
    )


def _moe(moe: Moe) -> Moe:
    return Moe(
        experts=min(moe.experts, 4),
        top_k=min(moe.top_k, 2),
        intermediate=HIDDEN // 2,
        shared=min(moe.shared, 1),
        shared_intermediate=HIDDEN if moe.shared_intermediate is not None else None,
        first_dense_layers=min(moe.first_dense_layers, 1),
        layer_step=min(moe.layer_step, 2),
    )


def _mla(mla: Mla) -> Mla:
    return Mla(
        q_lora_rank=min(mla.q_lora_rank, 32),
        kv_lora_rank=32,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=16,
    )
