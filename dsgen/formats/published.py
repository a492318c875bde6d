"""Where the weights of a generated folder come from: a published checkpoint, or chance."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsgen.formats.families import traits_of
from dsgen.formats.templating import render
from dsgen.formats.values import NotCarried
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.values import Architecture

NAME = "pretrained.py"
TEMPLATE = "model/pretrained.py.j2"

# Classes whose checkpoints name every tensor as the generated decoder does, but for a leading "model.":
# read in transformers 5.24, compared in tests/formats/test_pretrained.py.
_SAME_NAMES = frozenset(
    {
        "GemmaForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "Olmo2ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
    }
)


def reads_weights(architecture: Architecture) -> bool:
    """Whether the generated decoder can start from the architecture's published tensors."""
    return architecture.hf_architecture in _SAME_NAMES and architecture.moe is None


def loadable(architecture: Architecture) -> bool:
    """Whether transformers can make it for the folder instead (target.loaded_by)."""
    return architecture.hf_architecture in HF_CLASSES


def pretrained(architecture: Architecture, templates: Path | None) -> dict[str, str]:
    """The file that reads a checkpoint; none where the names differ."""
    if not reads_weights(architecture):
        return {}
    gelu = "gelu_pytorch_tanh" if traits_of(architecture).tanh_gelu else "gelu"
    values: dict[str, Any] = {
        # By its name in config.json.
        "activation": {"swiglu": "silu", "relu": "relu"}.get(architecture.mlp, gelu),
        "window": architecture.sliding_window is not None,
        "tied": architecture.tied,
    }
    return {NAME: render(TEMPLATE, values, templates)}


def start(architecture: Architecture, *, by_transformers: bool) -> Iterator[NotCarried]:
    """A note on the RoPE base: it changes no tensor, so it stands in no table, and the default is not the published."""
    if architecture.positional != "rope":
        return
    if by_transformers:
        yield NotCarried(
            "rope_theta",
            "the default of its class",
            "train.py --model FOLDER",
            "without it training starts from scratch; RoPE base and norm epsilon come with published weights",
        )
        return
    if reads_weights(architecture):
        how = "train.py --weights FOLDER"
    else:
        how = "target.loaded_by: transformers" if loadable(architecture) else "rope_theta of Config in model.py"
    yield NotCarried(
        "rope_theta",
        10000.0,
        how,
        "the decoder in model.py starts from scratch with RoPE base 10000, which need not be the published one",
    )
