"""Decoders whose layers are not all softmax attention over their own tokens: all tensors, for counting."""

from collections.abc import Iterator
from dataclasses import replace

from dsgen.shapes.attention import attention
from dsgen.shapes.linear import linear
from dsgen.shapes.mlp import dense
from dsgen.shapes.norms import norm
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Block, Shapes, Tensor


def hybrid(name: str, arch: Architecture) -> Shapes:
    """By the switches of ``extra``: linear attention in all but every full_every-th layer, or a cross-attention layer
    in every cross_every-th."""
    shapes = build(name, arch)
    return _linear(shapes) if "linear_value_heads" in arch.extra else _crossed(shapes)


def _linear(shapes: Shapes) -> Shapes:
    """Qwen3-Next and Qwen3.5: three layers of gated delta net, then one of softmax attention whose query carries a gate
    as wide as itself (transformers models/qwen3_next/modeling_qwen3_next.py)."""
    arch = shapes.architecture
    every = int(arch.extra["full_every"])
    made: dict[tuple[int, bool], Block] = {}
    blocks = []
    for layer, block in enumerate(shapes.blocks):
        full = (layer + 1) % every == 0
        key = (id(block), full)
        if key not in made:
            rest = [tensor for tensor in block.tensors if not tensor.name.startswith("self_attn.")]
            mixer = _gated(arch) if full else _delta_net(arch)
            made[key] = Block((*mixer, *rest), block.is_moe)
        blocks.append(made[key])
    return replace(shapes, blocks=tuple(blocks))


def _gated(arch: Architecture) -> Iterator[Tensor]:
    for tensor in attention(arch):
        doubled = tensor.name == "self_attn.q_proj.weight"
        yield Tensor(tensor.name, (2 * tensor.shape[0], tensor.shape[1])) if doubled else tensor


def _delta_net(arch: Architecture) -> Iterator[Tensor]:
    """With k key heads and v value heads of d: queries, keys, values and a gate, 2 k d + 2 v d; a decay and a step for
    each value head; a convolution over queries, keys and values; a norm of d."""
    extra, h = arch.extra, arch.hidden
    keys, values, d = int(extra["linear_key_heads"]), int(extra["linear_value_heads"]), int(extra["linear_head_dim"])
    yield from linear("linear_attn.in_proj_qkvz", 2 * (keys + values) * d, h)
    yield from linear("linear_attn.in_proj_ba", 2 * values, h)
    yield Tensor("linear_attn.conv1d.weight", ((2 * keys + values) * d, 1, int(extra["linear_conv"])))
    yield Tensor("linear_attn.dt_bias", (values,))
    yield Tensor("linear_attn.A_log", (values,))
    yield Tensor("linear_attn.norm.weight", (d,))
    yield from linear("linear_attn.out_proj", h, values * d)


def _crossed(shapes: Shapes) -> Shapes:
    """Llama 3.2 Vision: a layer that attends to the image only, with norms of queries and keys and two gates of one
    number, stands at 3, 8, 13, ...; 8 more embeddings for its special tokens
    (transformers models/mllama/modeling_mllama.py, configuration_mllama.py)."""
    arch = shapes.architecture
    every, first, special = (
        int(arch.extra["cross_every"]),
        int(arch.extra["cross_first"]),
        int(arch.extra["embed_more"]),
    )
    crossed = Block(tuple(_cross_layer(arch)))
    blocks = tuple(crossed if layer % every == first % every else block for layer, block in enumerate(shapes.blocks))
    outside = tuple(
        Tensor(tensor.name, (arch.vocab + special, arch.hidden)) if tensor.name == "embed_tokens.weight" else tensor
        for tensor in shapes.outside
    )
    return replace(shapes, blocks=blocks, outside=outside)


def _cross_layer(arch: Architecture) -> Iterator[Tensor]:
    for tensor in attention(replace(arch, qk_norm="head")):
        yield replace(tensor, name=tensor.name.replace("self_attn.", "cross_attn."))
    yield from dense(arch, arch.intermediate)
    for name in ("input_layernorm", "post_attention_layernorm"):
        yield from norm(name, arch.hidden, arch)
    yield Tensor("cross_attn_attn_gate", (1,))
    yield Tensor("cross_attn_mlp_gate", (1,))
