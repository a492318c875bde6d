"""How a Hugging Face decoder class reads its config.json: the form of a row of hf_classes.py."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsgen.shapes.config_file import Config

KEYS: Mapping[str, str] = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate": "intermediate_size",
    "vocab": "vocab_size",
    "tied": "tie_word_embeddings",
    "max_positions": "max_position_embeddings",
    "sliding_window": "sliding_window",
    "activation": "hidden_act",
}
"""Architecture field -> config key, as Llama has it."""
SHARED_FIELDS = frozenset(("layers", "hidden", "heads", "max_positions"))
"""Fields that a class with own keys reads under Llama's as well (transformers' attribute_map)."""
EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")
"""Names of the number of experts; classes answer to one another's (their attribute_map)."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A true-or-false key that decides between two values."""

    key: str
    on: Any
    off: Any

    def read(self, config: Config) -> Any:
        return self.on if config.flag(self.key) else self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class HfClass:
    """One class. Defaults are those of its configuration class; a value may be a Switch wherever it varies."""

    model_type: str
    family: str
    layer_class: str
    defaults: Mapping[str, Any]
    """Config key -> value when the file leaves it out; an absent one is null."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Architecture field -> config key, where it is not that of KEYS."""
    gated: bool = True
    heads_divide_hidden: bool = True
    """Without head_dim the width must be a multiple of heads; False: transformers rounds down instead."""
    norm: str = "rmsnorm"
    norms_per_layer: Any = 2
    attention_bias: Any = "none"
    mlp_bias: Any = False
    positional: Any = "rope"
    qk_norm: Any = None
    moe: Mapping[str, str | int] = field(default_factory=dict)
    """Moe field -> config key, or a number that no key changes."""
    mla: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()
    """Keys that add tensors which dsgen does not know yet, when true."""
    adjust: Callable[[Config, dict[str, Any]], None] | None = None
    """Last word on the fields read so far, for what no switch can say."""
