"""LoRA: adapters where PEFT puts them, as many parameters as have been published."""

import pytest

from dsgen.errors import InputError, Place
from dsgen.facts.models import models
from dsgen.shapes.from_row import from_row
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Method

MLP = ("gate_proj", "up_proj", "down_proj")


def lora(name: str, rank: int, targets: str | tuple[str, ...] = "all-linear") -> Shapes:
    return with_method(from_row(models()[name]), Method(type="lora", rank=rank, targets=targets))


# Published figures of trainable parameters, in millions: Lightning-AI/litgpt's fine-tuning tables (rank 8 on query
# and value), huggingface/peft's method comparison (Llama-3.2-3B), and the widely printed 39,976,960 of rank 16 on
# all linear layers of Llama-2-7B.
@pytest.mark.parametrize(
    ("name", "rank", "targets", "millions", "digits"),
    [
        ("llama-2-7b", 8, ("q_proj", "v_proj"), 4.194, 3),
        ("llama-2-13b", 8, ("q_proj", "v_proj"), 6.554, 3),
        ("falcon-40b", 8, ("q_proj", "v_proj"), 12.042, 3),
        ("phi-1.5", 8, ("q_proj", "v_proj"), 1.573, 3),
        ("llama-3.2-3b", 64, ("q_proj", "v_proj"), 18.3501, 4),
        ("llama-3.2-3b", 10, MLP, 9.4618, 4),
        ("llama-2-7b", 16, "all-linear", 39.976960, 6),
    ],
)
def test_trainable_parameters_as_published(
    name: str, rank: int, targets: str | tuple[str, ...], millions: float, digits: int
) -> None:
    shapes = lora(name, rank, targets)
    assert round(shapes.trainable / 1e6, digits) == millions
    assert shapes.parameters == models()[name].parameters + shapes.trainable


def test_all_linear_by_hand() -> None:
    # Per layer: q and o (h to h), k and v (h to h / 4), gate and up (h to i), down (i to h); r (in + out) each.
    h, i, r, layers = 4096, 14336, 16, 32
    per_layer = r * (2 * (h + h) + 2 * (h + h // 4) + 3 * (h + i))
    assert lora("llama-3.1-8b", r).trainable == layers * per_layer == 41_943_040


def test_adapters_stand_beside_their_frozen_layer() -> None:
    shapes = lora("llama-3.1-8b", 16, ("k_proj",))
    tensors = {tensor.name: tensor for tensor in shapes.blocks[0].tensors}
    assert tensors["self_attn.k_proj.lora_A.weight"].shape == (16, 4096)
    assert tensors["self_attn.k_proj.lora_B.weight"].shape == (1024, 16)
    assert [name for name, tensor in tensors.items() if tensor.trainable] == [
        "self_attn.k_proj.lora_A.weight",
        "self_attn.k_proj.lora_B.weight",
    ]
    assert not any(tensor.trainable for tensor in shapes.outside)
    assert len(set(map(id, shapes.blocks))) == 1


def test_full_fine_tuning_changes_nothing() -> None:
    shapes = from_row(models()["gpt2"])
    assert with_method(shapes, Method()) is shapes


def test_biases_and_norms_stay_frozen() -> None:
    adapted = {tensor.name for tensor in lora("gpt2", 4).blocks[0].tensors if tensor.trainable}
    layers = [f"self_attn.{letter}_proj" for letter in "qkvo"] + ["mlp.up_proj", "mlp.down_proj"]
    assert adapted == {f"{layer}.lora_{side}.weight" for layer in layers for side in "AB"}


def test_stacked_experts_and_routers_stay_frozen_and_that_is_said() -> None:
    shapes = lora("mixtral-8x7b", 8)
    assert {tensor.name.split(".")[1] for tensor in shapes.blocks[0].tensors if tensor.trainable} == {
        f"{letter}_proj" for letter in "qkvo"
    }
    assert "experts" in shapes.notes[-1]
    assert lora("llama-2-7b", 8).notes == ()


def test_latent_attention_and_shared_experts_get_adapters() -> None:
    adapted = {tensor.name.rsplit(".", 2)[0] for tensor in lora("deepseek-v3", 8).blocks[5].tensors if tensor.trainable}
    assert adapted == {
        *(f"self_attn.{name}" for name in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")),
        *(f"mlp.shared_experts.{name}" for name in MLP),
    }


@pytest.mark.parametrize(
    ("target", "help"),
    [("q_porj", "did you mean q_proj"), ("c_attn", "one of all-linear, down_proj"), ("gate", "gate_proj")],
)
def test_an_unknown_target_gets_the_nearest(target: str, help: str) -> None:
    with pytest.raises(InputError, match="is no linear layer") as caught:
        with_method(
            from_row(models()["llama-2-7b"]),
            Method(type="lora", targets=("q_proj", target)),
            Place("spec.yaml", 9, 14),
        )
    assert str(caught.value).startswith("spec.yaml:9:14: ")
    assert help in str(caught.value)
