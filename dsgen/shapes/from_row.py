"""A row of the model table becomes shapes."""

from dsgen.errors import InputError, Place
from dsgen.facts.models import Model
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Mla, Moe, Shapes

_KIND_IN_WORDS = {
    "encoder": "an encoder without a decoder",
    "encoder-decoder": "an encoder-decoder",
    "vision": "a vision model",
    "vision-language": "a vision-language model",
    "hybrid": "a hybrid whose layers are not all softmax attention and MLP",
}


def from_row(model: Model, place: Place | None = None) -> Shapes:
    """Shapes of a decoder-only row; any other kind is refused."""
    if model.kind != "decoder":
        raise InputError.at(
            f"{model.name} is {_KIND_IN_WORDS[model.kind]}: not supported yet",
            place,
            "choose a decoder-only model; dsgen show models marks those that are supported",
        )
    return build(model.name, architecture(model))


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
