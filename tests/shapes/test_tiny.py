"""A tiny model has every trait of the real one."""

import pytest

from dsgen.facts.models import models
from dsgen.shapes.from_row import architecture
from dsgen.shapes.tensors import build
from dsgen.shapes.tiny import tiny
from dsgen.shapes.values import Architecture, Block

DECODERS = [model for model in models().values() if model.kind in ("decoder", "vision-language")]
KEPT = (
    "family",
    "hf_architecture",
    "layer_class",
    "tied",
    "mlp",
    "norm",
    "norms_per_layer",
    "attention_bias",
    "mlp_bias",
    "positional",
    "qk_norm",
    "native_dtype",
)


def kinds(arch: Architecture) -> dict[bool, Block]:
    return {block.is_moe: block for block in build("", arch).blocks}


@pytest.mark.parametrize("model", DECODERS, ids=lambda model: model.name)
def test_the_same_tensors_in_small(model) -> None:  # type: ignore[no-untyped-def]
    real = architecture(model)
    small = tiny(real)
    for field in KEPT:
        assert getattr(small, field) == getattr(real, field), field
    assert small.extra.keys() == real.extra.keys()
    assert build("", small).parameters < 500_000
    # The same tensors by name, in the blocks of both kinds and outside them.
    assert kinds(small).keys() == kinds(real).keys()
    for is_moe, block in kinds(small).items():
        assert [tensor.name for tensor in block.tensors] == [tensor.name for tensor in kinds(real)[is_moe].tensors]
    assert [t.name for t in build("", small).outside] == [t.name for t in build("", real).outside]


@pytest.mark.parametrize(
    ("name", "heads", "kv_heads"),
    [("llama-2-7b", 4, 4), ("llama-3.1-8b", 4, 2), ("falcon-7b", 4, 1), ("gemma-2b", 4, 1)],
)
def test_grouping_of_heads_is_kept(name: str, heads: int, kv_heads: int) -> None:
    small = tiny(architecture(models()[name]))
    assert (small.heads, small.kv_heads) == (heads, kv_heads)


def test_wide_queries_stay_wide() -> None:
    wide, plain = (tiny(architecture(models()[name])) for name in ("qwen3-32b", "llama-2-7b"))
    assert wide.heads * wide.head_dim > wide.hidden
    assert plain.heads * plain.head_dim == plain.hidden


def test_experts_can_be_chosen_from() -> None:
    for model in DECODERS:
        moe = tiny(architecture(model)).moe
        assert moe is None or moe.top_k < moe.experts
