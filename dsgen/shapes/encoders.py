"""Encoders, encoder-decoders and vision transformers: all their tensors, for counting.

Names are those of dsgen/shapes/tensors.py where a decoder has the same tensor; symbols as in values.py. Each total is
held to the published number of every row of dsgen/facts/models.csv.
"""

from collections.abc import Iterator
from dataclasses import replace

from dsgen.shapes.attention import attention
from dsgen.shapes.linear import linear
from dsgen.shapes.mlp import dense
from dsgen.shapes.norms import norm
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Block, Shapes, Tensor

_T5_BUCKETS = 32
"""T5's relative_attention_num_buckets; every published T5 has them."""
_FRAMES = 1500
"""Whisper's max_source_positions."""


def encoder(name: str, arch: Architecture) -> Shapes:
    """BERT's relatives: a decoder's tensors, and those that only an encoder has."""
    shapes = build(name, arch)
    blocks = shapes.blocks
    if arch.extra.get("first_norm_identity") == "1":
        # ModernBERT: the embedding is normalised already.
        tensors = tuple(tensor for tensor in blocks[0].tensors if not tensor.name.startswith("input_layernorm."))
        blocks = (Block(tensors), *blocks[1:])
    return replace(shapes, blocks=blocks, outside=(*shapes.outside, *_beside_an_encoder(arch)))


def _beside_an_encoder(arch: Architecture) -> Iterator[Tensor]:
    extra, h = arch.extra, arch.hidden
    if "type_vocab" in extra:
        yield Tensor("embed_token_types.weight", (int(extra["type_vocab"]), h))
    if "rel_buckets" in extra:
        # DeBERTa-v3: positions in either direction, shared by all layers, with a norm of their own.
        yield Tensor("embed_relative.weight", (2 * int(extra["rel_buckets"]), h))
        yield from norm("embed_relative_layernorm", h, arch)
    if extra.get("pooler") == "1":
        yield from linear("pooler", h, h, bias=True)


def encoder_decoder(name: str, arch: Architecture, decoder_layers: int) -> Shapes:
    """T5 and Whisper: ``arch.layers`` of the encoder, then those of the decoder, which attend to the encoder, too."""
    plain = Block(tuple(_half(arch, crossed=False)))
    crossed = Block(tuple(_half(arch, crossed=True)))
    outside = _whisper(arch) if "mel" in arch.extra else _t5(arch)
    return Shapes(name, arch, (plain,) * arch.layers + (crossed,) * decoder_layers, tuple(outside))


def _half(arch: Architecture, *, crossed: bool) -> Iterator[Tensor]:
    yield from attention(arch)
    yield from norm("input_layernorm", arch.hidden, arch)
    if crossed:
        for tensor in attention(arch):
            yield replace(tensor, name=tensor.name.replace("self_attn.", "cross_attn."))
        yield from norm("cross_attention_layernorm", arch.hidden, arch)
    yield from dense(arch, arch.intermediate)
    yield from norm("post_attention_layernorm", arch.hidden, arch)


def _t5(arch: Architecture) -> Iterator[Tensor]:
    """One embedding for both halves; the first layer of each has the relative bias that all its layers use."""
    yield Tensor("embed_tokens.weight", (arch.vocab, arch.hidden))
    for half in ("encoder", "decoder"):
        yield Tensor(f"{half}.relative_attention_bias.weight", (_T5_BUCKETS, arch.heads))
        yield from norm(f"{half}.norm", arch.hidden, arch)
    if not arch.tied:
        yield Tensor("lm_head.weight", (arch.vocab, arch.hidden))


def _whisper(arch: Architecture) -> Iterator[Tensor]:
    """Two convolutions of width 3 over mel bands, fixed positions of both halves stored as parameters."""
    h, mel = arch.hidden, int(arch.extra["mel"])
    for name, width in (("conv1", mel), ("conv2", h)):
        yield Tensor(f"encoder.{name}.weight", (h, width, 3))
        yield Tensor(f"encoder.{name}.bias", (h,))
    assert arch.max_positions is not None, "learned positions have a number"
    yield Tensor("encoder.embed_positions.weight", (_FRAMES, h))
    yield Tensor("embed_positions.weight", (arch.max_positions, h))
    yield Tensor("embed_tokens.weight", (arch.vocab, h))
    for half in ("encoder", "decoder"):
        yield from norm(f"{half}.norm", h, arch)
    if not arch.tied:
        yield Tensor("lm_head.weight", (arch.vocab, h))


def vision(name: str, arch: Architecture) -> Shapes:
    """ViT without pooler and classifier: blocks of a decoder, patches in place of tokens."""
    h, patch = arch.hidden, int(arch.extra["patch"])
    assert arch.max_positions is not None, "learned positions have a number"
    outside = (
        Tensor("embed_class", (1, 1, h)),
        Tensor("embed_positions.weight", (arch.max_positions, h)),
        Tensor("embed_patches.weight", (h, 3, patch, patch)),
        Tensor("embed_patches.bias", (h,)),
        *norm("norm", h, arch),
    )
    return replace(build(name, arch), outside=outside)
