"""An architecture as the arguments of its Hugging Face configuration class."""

from typing import Any

from dsgen.errors import RefusedError
from dsgen.shapes.hf_class import KEYS, HfClass, Switch
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.values import Architecture

# Sizes that every configuration class has, under its own key or Llama's.
_SIZES = ("vocab", "hidden", "intermediate", "layers", "heads", "kv_heads", "max_positions", "tied")


def hf_config(architecture: Architecture) -> dict[str, Any]:
    """Keyword arguments with which the class of ``architecture.hf_architecture`` has the same tensors.

    The inverse of dsgen.shapes.from_config; what changes no tensor (RoPE base, norm epsilon) keeps
    the class's default.
    """
    hf_class = _class(architecture)
    config = {
        _key(hf_class, field): getattr(architecture, field) for field in (*_SIZES, *_some(hf_class, architecture))
    }
    for field in ("attention_bias", "mlp_bias", "qk_norm", "norms_per_layer", "positional"):
        switch = getattr(hf_class, field)
        if isinstance(switch, Switch):
            config[switch.key] = getattr(architecture, field) == switch.on
    if architecture.moe is not None:
        values = {key: getattr(architecture.moe, field) for field, key in hf_class.moe.items() if isinstance(key, str)}
        config |= {key: value for key, value in values.items() if value is not None}
        if not hf_class.moe.get("first_dense_layers") and architecture.moe.first_dense_layers:
            config["mlp_only_layers"] = list(range(architecture.moe.first_dense_layers))
    config |= _OF_FAMILY.get(hf_class.family, _nothing)(architecture)
    # None says nothing, but for a window: that turns off the class's own.
    return {key: value for key, value in config.items() if value is not None or key == _key(hf_class, "sliding_window")}


def model_type(architecture: Architecture) -> str:
    """The name under which transformers knows the architecture's configuration class."""
    return _class(architecture).model_type


def _class(architecture: Architecture) -> HfClass:
    name = architecture.hf_architecture
    if name not in HF_CLASSES or architecture.mla is not None:
        raise RefusedError.at(
            f"no script for the Trainer can be generated: dsgen can't describe {name} to transformers yet",
            help="build the config alone (-o FILE) and use it with your own script",
        )
    return HF_CLASSES[name]


def _key(hf_class: HfClass, field: str) -> str:
    return hf_class.keys.get(field, KEYS[field])


def _some(hf_class: HfClass, architecture: Architecture) -> list[str]:
    found = []
    # A class that knows head_dim has a default for it, or derives it from the width.
    if architecture.hidden != architecture.heads * architecture.head_dim or "head_dim" in hf_class.defaults:
        found.append("head_dim")
    if architecture.sliding_window is not None or _key(hf_class, "sliding_window") in hf_class.defaults:
        found.append("sliding_window")
    return found


def _nothing(_architecture: Architecture) -> dict[str, Any]:
    return {}


def _falcon(architecture: Architecture) -> dict[str, Any]:
    grouped = architecture.norms_per_layer == 2
    return {"new_decoder_architecture": grouped, "multi_query": architecture.kv_heads == 1, "parallel_attn": True}


def _gpt_neo(architecture: Architecture) -> dict[str, Any]:
    """Layers take turns: global attention, then within the window."""
    pairs, odd = divmod(architecture.layers, 2)
    turns: list[object] = [[["global", "local"], pairs]]
    return {"attention_types": [*turns, [["global"], 1]] if odd else turns}


def _gpt_j(architecture: Architecture) -> dict[str, Any]:
    return {"rotary_dim": architecture.head_dim // 4}


def _phi_3(architecture: Architecture) -> dict[str, Any]:
    return {"partial_rotary_factor": 0.75} if architecture.tied else {}  # Phi-4-mini, see families.py


def _qwen3(architecture: Architecture) -> dict[str, Any]:
    # Published mixtures divide the chosen experts' weights by their sum; the class's default is not to.
    return {"norm_topk_prob": True} if architecture.moe is not None else {}


# What a family's class needs beside sizes.
_OF_FAMILY = {"falcon": _falcon, "gpt-neo": _gpt_neo, "gpt-j": _gpt_j, "phi-3": _phi_3, "qwen3": _qwen3}

# For a vocabulary smaller than the class's special tokens.
NO_SPECIAL_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
