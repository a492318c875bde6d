"""What a family of decoders does beyond the columns of models.csv: the traits its generated decoder needs.

Every row was read in the family's class of transformers 5.24 (``transformers/models/<name>/``), and
tests/formats/test_decoder.py compares the rendered decoder with that class, logit by logit.
"""

from dataclasses import dataclass

from dsgen.errors import RefusedError
from dsgen.shapes.values import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """How the tensors are used; the defaults are Llama's."""

    parallel: bool = False
    """Attention and MLP both read the block's input, and both are added to it."""
    rotary_fraction: float = 1.0
    """Share of each head's width that is rotated; ignored where rotary_dim is set."""
    rotary_dim: int | None = None
    """Widths rotated, where the family fixes that number rather than a share."""
    rotary_interleaved: bool = False
    """Pairs are neighbours (0, 1), (2, 3), ... instead of halves (0, d/2), (1, d/2 + 1), ..."""
    tanh_gelu: bool = False
    """GELU by its tanh approximation."""
    norm_plus_one: bool = False
    """RMSNorm multiplies by 1 + weight, and its weight starts at zero."""
    scale_embedding: bool = False
    """Embeddings are multiplied by sqrt(hidden)."""
    attention_scale: float | None = None
    """Factor of the attention scores where it is not 1 / sqrt(head_dim)."""
    window_every: int = 1
    """One layer in this many, the last of each group, is limited to the sliding window."""
    router_renormalises: bool = True
    """The weights of the chosen experts are divided by their sum."""


_LLAMA = Traits()
_GLM = Traits(rotary_fraction=0.5, rotary_interleaved=True)

_FAMILIES: dict[str, Traits] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "qwen1.5": Traits(router_renormalises=False),
    "qwen2": Traits(router_renormalises=False),
    "qwen2.5": _LLAMA,
    "qwen3": _LLAMA,
    "phi-3": _LLAMA,
    "phi-3.5": _LLAMA,
    "phi-4": _LLAMA,
    "deepseek": Traits(router_renormalises=False),
    "falcon3": _LLAMA,
    "yi": _LLAMA,
    "internlm2": _LLAMA,
    "smollm2": _LLAMA,
    "tinyllama": _LLAMA,
    "olmo-2": _LLAMA,
    "gemma": Traits(norm_plus_one=True, scale_embedding=True, tanh_gelu=True),
    "chatglm": _GLM,
    "glm-4": _GLM,
    "gpt2": Traits(tanh_gelu=True),
    "gpt-neo": Traits(tanh_gelu=True, attention_scale=1.0, window_every=2),
    "gpt-j": Traits(parallel=True, rotary_dim=64, rotary_interleaved=True, tanh_gelu=True),
    "gpt-neox": Traits(parallel=True, rotary_fraction=0.25),
    "pythia": Traits(parallel=True, rotary_fraction=0.25),
    "phi": Traits(parallel=True, rotary_dim=32, tanh_gelu=True),
    "falcon": Traits(parallel=True),
    "opt": _LLAMA,
    "bloom": Traits(tanh_gelu=True),
    "mpt": _LLAMA,
    "starcoder2": Traits(tanh_gelu=True),
}

# Why these are not rendered, so that nobody gets a look-alike instead.
_NOT_RENDERED = {
    "llama-4": "routes with sigmoids, scales its queries by position and attends in chunks",
    "gemma-2": "caps its attention scores and logits with a tanh",
    "gemma-3": "has an attention scale and two RoPE bases that differ by model and stand in no table of dsgen",
    "granite": "multiplies embeddings, residuals and logits by constants that stand in no table of dsgen",
    "baichuan2": "normalises its output head in every forward pass",
    "smollm3": "leaves out the rotary embedding in every fourth layer",
    "gpt-oss": "adds learned sinks to the attention scores and clamps its experts",
    "glm-4.5": "routes with sigmoids and a correction that is updated outside the optimizer",
    "qwen2.5-vl": "rotates by image row and column",
    "qwen3-next": "mixes linear attention into its layers",
    "qwen3.5": "mixes linear attention into its layers",
}

# Hugging Face's model_type, where it differs from the family's name here.
_ALIASES = {
    "gpt_neo": "gpt-neo",
    "gptj": "gpt-j",
    "gpt_neox": "gpt-neox",
    "phi3": "phi-3",
    "phimoe": "phi-3.5",
    "olmo2": "olmo-2",
    "qwen2_moe": "qwen2",
    "qwen3_moe": "qwen3",
    "gemma2": "gemma-2",
    "gemma3": "gemma-3",
    "gemma3_text": "gemma-3",
    "granitemoe": "granite",
    "llama4": "llama-4",
    "llama4_text": "llama-4",
    "gpt_oss": "gpt-oss",
    "glm4_moe": "glm-4.5",
    "glm": "glm-4",
    "glm4": "glm-4",
    "qwen3_next": "qwen3-next",
    "qwen2_5_vl": "qwen2.5-vl",
}


def traits_of(architecture: Architecture) -> Traits:
    """The traits of an architecture's family; refused, with the reason, where it can't be rendered faithfully."""
    family = _ALIASES.get(architecture.family, architecture.family)
    if family.startswith("llama-") and family != "llama-4":
        family = "llama"
    reason = _NOT_RENDERED.get(family) or _peculiar(family, architecture)
    if reason is None and family not in _FAMILIES:
        reason = "is not a family that dsgen can render"
    if reason is not None:
        raise RefusedError.at(
            f"no decoder can be generated: {architecture.family} {reason}",
            help="build the config alone (-o FILE) and use it with your own model",
        )
    traits = _FAMILIES[family]
    if family == "phi-4" and architecture.tied:
        return Traits(rotary_fraction=0.75)  # Phi-4-mini
    return traits


def _peculiar(family: str, architecture: Architecture) -> str | None:
    """What single models of a rendered family have and the template does not."""
    if architecture.mla is not None:
        return "uses multi-head latent attention"
    if family == "phi-3.5" and architecture.moe is not None:
        return "routes with SparseMixer"
    if "embed_proj" in architecture.extra:
        return "projects its embeddings (embed_proj)"
    if family == "mpt" and architecture.heads & (architecture.heads - 1):
        return "orders its ALiBi slopes differently when the heads are no power of two"
    if architecture.positional not in ("rope", "learned", "alibi"):
        return f"has {architecture.positional} positions"
    if architecture.norm not in ("rmsnorm", "layernorm"):
        return f"has the norm {architecture.norm}"
    if architecture.attention_bias not in ("none", "all", "qkv", "o"):
        return f"has the attention bias {architecture.attention_bias}"
    return None
