"""A row of the model table becomes shapes."""

from collections.abc import Mapping

from dsgen.errors import InputError, Place
from dsgen.facts.models import Kind, Model
from dsgen.shapes.encoders import encoder, encoder_decoder, vision
from dsgen.shapes.hybrid import hybrid
from dsgen.shapes.tensors import build
from dsgen.shapes.tower import with_tower
from dsgen.shapes.values import Architecture, Mla, Moe, Shapes

_KIND_IN_WORDS: Mapping[Kind, str] = {
    "encoder": "an encoder without a decoder",
    "encoder-decoder": "an encoder-decoder",
    "vision": "a vision model",
    "hybrid": "a hybrid whose layers are not all softmax attention and MLP",
}


PLANNED: frozenset[Kind] = frozenset(("decoder", "vision-language"))
"""Kinds whose activations have a formula."""


def from_row(model: Model, place: Place | None = None) -> Shapes:
    """Shapes of a row that can be planned for; any other kind is refused."""
    if model.kind not in PLANNED:
        raise InputError.at(
            f"{model.name} is {_KIND_IN_WORDS[model.kind]}: not supported yet: its {model.parameters} parameters are "
            "counted, its activations have no formula",
            place,
            "choose a decoder; dsgen show models marks those that are supported",
        )
    return counted(model)


def counted(model: Model) -> Shapes:
    """All tensors of a row of any kind."""
    arch = architecture(model)
    match model.kind:
        case "encoder":
            return encoder(model.name, arch)
        case "encoder-decoder":
            return encoder_decoder(model.name, arch, model.decoder_layers or 0)
        case "vision":
            return vision(model.name, arch)
        case "hybrid":
            made = hybrid(model.name, arch)
            return with_tower(made) if model.vision_parameters else made
        case "vision-language":
            return with_tower(build(model.name, arch))
        case _:
            return build(model.name, arch)


def architecture(model: Model) -> Architecture:
    """The decoder's hyper-parameters (of a vision-language row: those of its text part)."""
    extra = dict(model.extra)
    if model.router_buffers:
        extra["router_correction"] = "1"
    return Architecture(
        family=model.family,
        hf_architecture=model.hf_architecture,
        layer_class=model.layer_class,
        layers=model.layers,
        hidden=model.hidden,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        intermediate=model.intermediate,
        vocab=model.vocab,
        tied=model.tied,
        mlp=model.mlp,
        norm=model.norm,
        norms_per_layer=model.norms_per_layer,
        attention_bias=model.attention_bias,
        mlp_bias=model.mlp_bias,
        positional=model.positional,
        max_positions=model.max_positions,
        qk_norm=model.qk_norm,
        sliding_window=model.sliding_window,
        native_dtype=model.native_dtype,
        moe=_moe(model),
        mla=Mla(**model.mla) if model.mla else None,
        extra=extra,
    )


def _moe(model: Model) -> Moe | None:
    if model.moe_experts is None or model.moe_top_k is None or model.moe_intermediate is None:
        return None
    return Moe(
        experts=model.moe_experts,
        top_k=model.moe_top_k,
        intermediate=model.moe_intermediate,
        shared=model.moe_shared,
        shared_intermediate=model.moe_shared_intermediate,
        first_dense_layers=model.moe_first_dense_layers,
        layer_step=model.moe_layer_step,
    )
