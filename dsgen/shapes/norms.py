"""Normalisation layers of a block, and which of them a family has."""

from collections.abc import Iterator

from dsgen.shapes.values import Architecture, Tensor

# By norms_per_layer. One: attention and MLP read the same normalised input. Two: before attention
# and before the MLP. Four: before and after each (Gemma-2, GLM-4-0414).
NAMES = {
    1: ("input_layernorm",),
    2: ("input_layernorm", "post_attention_layernorm"),
    4: (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
}
# These normalise what attention and MLP return, not what they read.
OUTPUT_NAMES = ("post_attention_layernorm", "post_feedforward_layernorm")
OUTPUT_CLASSES = frozenset(("Olmo2ForCausalLM",))
# Attention and MLP both read the block's input; where each has a norm, both norms do.
PARALLEL_CLASSES = frozenset(("FalconForCausalLM", "GPTNeoXForCausalLM", "GPTJForCausalLM", "PhiForCausalLM"))


def norm_names(arch: Architecture) -> tuple[str, ...]:
    """The norms of one block, in the order in which they act."""
    return OUTPUT_NAMES if arch.hf_architecture in OUTPUT_CLASSES else NAMES[arch.norms_per_layer]


def norm(name: str, width: int, arch: Architecture) -> Iterator[Tensor]:
    """RMSNorm has a weight; LayerNorm has a bias too, unless the family leaves it out (MPT)."""
    yield Tensor(f"{name}.weight", (width,))
    if arch.norm == "layernorm" and arch.extra.get("norm_nobias") != "1":
        yield Tensor(f"{name}.bias", (width,))
