"""An architecture as the arguments of its Hugging Face configuration class."""

from typing import Any

from dsgen.errors import RefusedError
from dsgen.shapes.hf_class import KEYS, HfClass, Switch
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.values import Architecture

# Sizes that every configuration class has, under its own key or Llama's.
_SIZES = ("vocab", "hidden", "intermediate", "layers", "heads", "kv_heads", "max_positions", "tied")
# Only where the class reads them; others would keep them as attributes that nothing uses.
_SOME = ("head_dim", "sliding_window")


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
    if architecture.family == "falcon":
        config |= _falcon(architecture)
    return {key: value for key, value in config.items() if value is not None}


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
    # A class that knows head_dim has a default for it, or derives it where the width does not.
    derived = architecture.hidden == architecture.heads * architecture.head_dim
    wanted = [field for field in _SOME if field != "head_dim" or not derived or "head_dim" in hf_class.defaults]
    return [field for field in wanted if field == "head_dim" or _key(hf_class, field) in hf_class.defaults]


def _falcon(architecture: Architecture) -> dict[str, Any]:
    grouped = architecture.norms_per_layer == 2
    return {"new_decoder_architecture": grouped, "multi_query": architecture.kv_heads == 1, "parallel_attn": True}
