"""Tensors add up to the counts that the models' publishers give, by name and by hand."""

from collections import Counter

import pytest

from dsgen.errors import InputError, Place
from dsgen.facts.models import models
from dsgen.shapes.from_row import PLANNED, architecture, counted, from_row
from dsgen.shapes.tensors import build
from dsgen.shapes.tower import PREFIX, has_tower
from dsgen.shapes.values import Shapes, Tensor

EVERY = list(models().values())
DECODERS = [model for model in EVERY if model.kind == "decoder"]
REFUSED = [model for model in EVERY if model.kind not in PLANNED]


def shapes(name: str) -> Shapes:
    return from_row(models()[name])


def names(tensors: tuple[Tensor, ...]) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors}


def test_how_many_rows_are_held_to_their_count_and_how_many_refused() -> None:
    # Named, so that a table read badly cannot pass by being short.
    assert len(DECODERS) >= 143
    assert Counter(model.kind for model in REFUSED) == {"encoder": 8, "encoder-decoder": 12, "vision": 3, "hybrid": 3}
    assert sum(model.kind == "vision-language" for model in EVERY) == 8


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_tensors_add_up_to_the_published_total(model) -> None:  # type: ignore[no-untyped-def]
    made = counted(model)
    assert made.parameters == model.parameters
    outside = [tensor.name for tensor in made.outside]
    assert len(set(outside)) == len(outside)


@pytest.mark.parametrize("model", [model for model in EVERY if model.vision_parameters], ids=lambda model: model.name)
def test_towers_are_frozen_and_as_large_as_published(model) -> None:  # type: ignore[no-untyped-def]
    made = counted(model)
    tower = [tensor for tensor in made.outside if tensor.name.startswith(PREFIX)]
    assert sum(tensor.numel for tensor in tower) == model.vision_parameters
    assert made.trainable == model.parameters - model.vision_parameters
    assert has_tower(made)


@pytest.mark.parametrize("model", REFUSED, ids=lambda model: model.name)
def test_other_kinds_are_refused_where_they_were_written(model) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="not supported yet") as caught:
        from_row(model, Place("spec.yaml", 1, 8))
    assert str(caught.value).startswith(f"spec.yaml:1:8: {model.name} is a")
    assert caught.value.exit_code == 2


def test_names_are_unique_in_every_block() -> None:
    for model in DECODERS:
        built = from_row(model)
        for block in set(built.blocks):
            assert len(names(block.tensors)) == len(block.tensors), model.name
        assert len(names(built.outside)) == len(built.outside), model.name


def test_llama_2_7b_by_hand() -> None:
    llama = shapes("llama-2-7b")
    h, i, v, layers = 4096, 11008, 32000, 32
    block = 4 * h * h + 3 * h * i + 2 * h
    assert llama.blocks[0].parameters == block == 202_383_360
    assert llama.parameters == layers * block + 2 * v * h + h == 6_738_415_616
    assert llama.trainable == llama.parameters
    assert llama.largest_block == block
    assert llama.largest_tensor == v * h
    assert len(llama.blocks) == layers
    assert len(set(map(id, llama.blocks))) == 1
    assert names(llama.blocks[0].tensors) == {
        "self_attn.q_proj.weight": (h, h),
        "self_attn.k_proj.weight": (h, h),
        "self_attn.v_proj.weight": (h, h),
        "self_attn.o_proj.weight": (h, h),
        "mlp.gate_proj.weight": (i, h),
        "mlp.up_proj.weight": (i, h),
        "mlp.down_proj.weight": (h, i),
        "input_layernorm.weight": (h,),
        "post_attention_layernorm.weight": (h,),
    }
    assert names(llama.outside) == {"embed_tokens.weight": (v, h), "norm.weight": (h,), "lm_head.weight": (v, h)}


def test_gpt2_by_hand() -> None:
    gpt2 = shapes("gpt2")
    h, i, v, positions = 768, 3072, 50257, 1024
    block = 4 * h * h + 4 * h + 2 * h * i + i + h + 4 * h
    assert gpt2.parameters == 12 * block + v * h + positions * h + 2 * h == 124_439_808
    assert names(gpt2.outside) == {
        "embed_tokens.weight": (v, h),
        "embed_positions.weight": (positions, h),
        "norm.weight": (h,),
        "norm.bias": (h,),
    }
    tensors = names(gpt2.blocks[0].tensors)
    assert "mlp.gate_proj.weight" not in tensors
    assert tensors["self_attn.o_proj.bias"] == (h,)
    assert tensors["input_layernorm.bias"] == (h,)


def test_grouped_query_heads_narrow_keys_and_values() -> None:
    tensors = names(shapes("llama-3.1-8b").blocks[0].tensors)
    assert tensors["self_attn.q_proj.weight"] == (4096, 4096)
    assert tensors["self_attn.k_proj.weight"] == (1024, 4096)
    assert tensors["self_attn.v_proj.weight"] == (1024, 4096)


def test_a_query_may_be_wider_than_the_residual_stream() -> None:
    tensors = names(shapes("qwen3-32b").blocks[0].tensors)
    assert tensors["self_attn.q_proj.weight"] == (8192, 5120)
    assert tensors["self_attn.o_proj.weight"] == (5120, 8192)
    assert tensors["self_attn.q_norm.weight"] == (128,)


def test_mixtral_stacks_its_experts_and_activates_two() -> None:
    mixtral = shapes("mixtral-8x7b")
    h, i, experts = 4096, 14336, 8
    tensors = names(mixtral.blocks[0].tensors)
    assert tensors["mlp.gate.weight"] == (experts, h)
    assert tensors["mlp.experts.up_proj"] == (experts, i, h)
    assert tensors["mlp.experts.down_proj"] == (experts, h, i)
    assert all(block.is_moe for block in mixtral.blocks)
    active = mixtral.parameters - 32 * (experts - 2) * 3 * h * i
    assert active == models()["mixtral-8x7b"].active_parameters == 12_879_925_248


def test_deepseek_v3_has_three_dense_layers_latent_attention_and_frozen_corrections() -> None:
    v3 = shapes("deepseek-v3")
    assert [block.is_moe for block in v3.blocks] == [False] * 3 + [True] * 58
    tensors = names(v3.blocks[3].tensors)
    assert tensors["self_attn.q_a_proj.weight"] == (1536, 7168)
    assert tensors["self_attn.q_b_proj.weight"] == (128 * 192, 1536)
    assert tensors["self_attn.kv_a_proj_with_mqa.weight"] == (512 + 64, 7168)
    assert tensors["self_attn.kv_b_proj.weight"] == (128 * (128 + 128), 512)
    assert tensors["self_attn.o_proj.weight"] == (7168, 128 * 128)
    assert tensors["mlp.shared_experts.up_proj.weight"] == (2048, 7168)
    # The 58 x 256 correction values are no parameters of the class that publishes 671,026,404,352 of them.
    assert v3.parameters - v3.trainable == 58 * 256 == models()["deepseek-v3"].router_buffers


def test_experts_every_second_layer() -> None:
    maverick = build("maverick", architecture(models()["llama-4-maverick"]))
    assert [block.is_moe for block in maverick.blocks[:4]] == [False, True, False, True]


@pytest.mark.parametrize(
    ("name", "norms"),
    [
        ("phi-2", {"input_layernorm"}),
        ("llama-2-7b", {"input_layernorm", "post_attention_layernorm"}),
        ("olmo-2-7b", {"post_attention_layernorm", "post_feedforward_layernorm"}),
        (
            "gemma-2-9b",
            {
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            },
        ),
    ],
)
def test_norms_of_a_block(name: str, norms: set[str]) -> None:
    found = {tensor.name.split(".")[0] for tensor in shapes(name).blocks[0].tensors if len(tensor.shape) == 1}
    assert {tensor for tensor in found if tensor.endswith("layernorm")} == norms
