"""Source text of a plain-torch decoder with the tensors and the data flow of the spec's family."""

from dataclasses import dataclass
from pathlib import Path

from dsgen.formats.families import Traits, traits_of
from dsgen.formats.templating import render
from dsgen.shapes.norms import norm_names
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Attention, Loss, Method

TEMPLATE = "model/decoder.py.j2"

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
    loss: Loss = "full",
    templates: Path | None = None,
) -> str:
    """The module's text; refused, with the reason, for a family that can't be rendered faithfully.

    It holds ``Config`` (the real sizes, and ``Config.tiny()`` with the same traits) and the class
    ``name`` with ``forward(input_ids, labels=None)``: the loss, or the logits without labels.
    """
    traits, extra = traits_of(architecture), architecture.extra
    adapted = _adapted(method)
    return render(
        TEMPLATE,
        {
            "name": name,
            "model": model or architecture.family,
            "a": architecture,
            "traits": traits,
            "method": method,
            "eager": attention == "eager",
            "chunked_loss": loss != "full",
            "real": _real(architecture, traits),
            "tiny": _tiny(architecture, traits),
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


def _real(a: Architecture, traits: Traits) -> _Sizes:
    moe = a.moe
    return _Sizes(
        vocab=a.vocab,
        hidden=a.hidden,
        intermediate=a.intermediate,
        layers=a.layers,
        heads=a.heads,
        kv_heads=a.kv_heads,
        head_dim=a.head_dim,
        rotary_dim=_rotary_dim(a, traits, a.head_dim),
        max_positions=a.max_positions or 2048,
        window=a.sliding_window,
        experts=moe.experts if moe else 0,
        top_k=moe.top_k if moe else 0,
        moe_intermediate=moe.intermediate if moe else 0,
        shared_intermediate=(moe.shared_intermediate or moe.shared * moe.intermediate) if moe else 0,
        first_dense_layers=moe.first_dense_layers if moe else 0,
        layer_step=moe.layer_step if moe else 1,
    )


def _tiny(a: Architecture, traits: Traits) -> _Sizes:
    """Seconds on a CPU, with every trait of the real one still at work: grouped heads stay grouped,
    a window is shorter than the sequence, dense layers stand before those with experts."""
    moe = a.moe
    dense = min(moe.first_dense_layers, 1) if moe else 0
    step = min(moe.layer_step, 2) if moe else 1
    return _Sizes(
        vocab=256,
        hidden=64,
        intermediate=128,
        layers=max(2, dense + step),
        heads=4,
        kv_heads=4 if a.kv_heads == a.heads else 1 if a.kv_heads == 1 else 2,
        head_dim=16,
        rotary_dim=_rotary_dim(a, traits, 16),
        max_positions=128,
        window=16 if a.sliding_window else None,
        experts=min(moe.experts, 4) if moe else 0,
        top_k=min(moe.top_k, 2) if moe else 0,
        moe_intermediate=32 if moe else 0,
        shared_intermediate=32 if moe and moe.shared else 0,
        first_dense_layers=dense,
        layer_step=step,
    )


def _rotary_dim(a: Architecture, traits: Traits, head_dim: int) -> int:
    """Rotated width of a head, even; a width fixed by the family shrinks in proportion."""
    fraction = traits.rotary_dim / a.head_dim if traits.rotary_dim else traits.rotary_fraction
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
