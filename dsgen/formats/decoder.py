"""Source text of a plain-torch decoder with the tensors and the data flow of the spec's family."""

from dataclasses import dataclass
from pathlib import Path

from dsgen.formats.families import Traits, traits_of
from dsgen.formats.published import reads_weights
from dsgen.formats.templating import render
from dsgen.shapes.mlp import shared_width
from dsgen.shapes.norms import norm_names
from dsgen.shapes.tiny import tiny
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Attention, Method

TEMPLATE = "model/decoder.py.j2"

# Positions that are only a bound (no table of embeddings) where the model's own is unknown.
_POSITIONS = 2048

_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")
# The router is no linear layer to LoRA: see dsgen/shapes/lora.py.
_ADAPTABLE = frozenset((*_ATTENTION, *_MLP, "shared_expert_gate"))
_LINEARS = (*_ADAPTABLE, "gate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """The numbers of the generated Config; field names are the template's."""

    vocab: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    max_positions: int
    window: int | None
    experts: int
    top_k: int
    moe_intermediate: int
    shared_intermediate: int
    first_dense_layers: int
    layer_step: int


def decoder_source(
    architecture: Architecture,
    method: Method,
    *,
    name: str = "Decoder",
    model: str | None = None,
    attention: Attention = "sdpa",
    bare: bool = False,
    templates: Path | None = None,
) -> str:
    """The module's text; refused, with the reason, for a family that can't be rendered faithfully.

    It holds ``Config`` (the real sizes, and ``Config.tiny()`` with the same traits) and the class
    ``name`` with ``forward(input_ids, labels=None)``: the loss, or the logits without labels. ``bare`` leaves
    loss and checkpointing to who uses it, and has the logits only.
    """
    traits, extra = traits_of(architecture), architecture.extra
    adapted, small = _adapted(method), tiny(architecture)
    # A width fixed by the family shrinks in proportion.
    fraction = traits.rotary_dim / architecture.head_dim if traits.rotary_dim else traits.rotary_fraction
    return render(
        TEMPLATE,
        {
            "name": name,
            "model": model or architecture.family,
            "a": architecture,
            "traits": traits,
            "method": method,
            "bare": bare,
            "eager": attention == "eager",
            "scaled": reads_weights(architecture),
            "real": _sizes(architecture, _rotary_dim(architecture.head_dim, fraction)),
            "tiny": _sizes(small, _rotary_dim(small.head_dim, fraction)),
            "activation": _activation(architecture, traits),
            "norm_bias": architecture.norm == "layernorm" and extra.get("norm_nobias") != "1",
            "qkv_bias": architecture.attention_bias in ("all", "qkv"),
            "o_bias": architecture.attention_bias in ("all", "o"),
            "position_offset": int(extra.get("pos_offset", "0")),
            "norms": norm_names(architecture),
            "parallel": traits.parallel,
            "embed_norm": extra.get("embed_norm") == "1",
            "final_norm": extra.get("no_final_norm") != "1",
            "lm_bias": extra.get("lm_bias") == "1",
            "shared_gate": extra.get("shared_gate") == "1",
            "extras": _extras(architecture),
            "adapted": adapted,
            "linears": {name: "LoraLinear" if name in adapted else "Linear" for name in _LINEARS},
        },
        templates,
    )


def _sizes(a: Architecture, rotary_dim: int) -> _Sizes:
    moe = a.moe
    return _Sizes(
        vocab=a.vocab,
        hidden=a.hidden,
        intermediate=a.intermediate,
        layers=a.layers,
        heads=a.heads,
        kv_heads=a.kv_heads,
        head_dim=a.head_dim,
        rotary_dim=rotary_dim,
        max_positions=a.max_positions or _POSITIONS,
        window=a.sliding_window,
        experts=moe.experts if moe else 0,
        top_k=moe.top_k if moe else 0,
        moe_intermediate=moe.intermediate if moe else 0,
        shared_intermediate=shared_width(moe) if moe else 0,
        first_dense_layers=moe.first_dense_layers if moe else 0,
        layer_step=moe.layer_step if moe else 1,
    )


def _rotary_dim(head_dim: int, fraction: float) -> int:
    """Rotated width of a head: whole pairs."""
    return int(head_dim * fraction) // 2 * 2


def _activation(a: Architecture, traits: Traits) -> str:
    if a.mlp == "swiglu":
        return "silu"
    if a.mlp == "relu":
        return "relu"
    return "gelu_tanh" if traits.tanh_gelu else "gelu"


def _extras(a: Architecture) -> tuple[str, ...]:
    """What every block takes beside its input."""
    rope = ("rope",) if a.positional == "rope" else ()
    return (*rope, "mask") if a.positional == "alibi" or a.sliding_window else rope


def _adapted(method: Method) -> frozenset[str]:
    """Names of the linear layers that get adapters; dsgen.shapes.lora has refused unknown ones."""
    if method.type != "lora":
        return frozenset()
    names = (method.targets,) if isinstance(method.targets, str) else method.targets
    return _ADAPTABLE if names == ("all-linear",) else frozenset(names)
