"""What a way of training or of splitting a model costs and saves."""

from dataclasses import replace
from typing import Any

import pytest
from made import LLAMA_7B, coded, lora, machines, setting, timed

from dsgen.facts.constants import constant, constants_as
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Moe
from dsgen.steptime.attention import pairs
from dsgen.steptime.block import block_cost
from dsgen.steptime.machine import machine_of

MIXTURE = replace(LLAMA_7B, intermediate=14336, kv_heads=8, moe=Moe(experts=8, top_k=2, intermediate=14336))


def test_adapters_leave_out_the_weights_gradient() -> None:
    """Two products of three, and no states of the base."""
    stated: dict[str, Any] = {"micro_batch": 4, "target": "deepspeed"}
    full, adapted = timed(**stated), timed(**stated, training=lora())
    assert 0.6 < adapted.parts["compute"] / full.parts["compute"] < 0.9
    assert adapted.parts["optimizer"] < full.parts["optimizer"] / 50
    quantized = timed(**stated, training=lora(quantization="nf4"))
    assert quantized.parts["compute"] > adapted.parts["compute"]
    gptq = timed(**stated, training=lora(quantization="gptq4"))
    assert gptq.parts["compute"] > quantized.parts["compute"]
    # torch's own frameworks keep PEFT's adapters in fp32, which no tensor core multiplies.
    assert timed(micro_batch=4, training=lora()).parts["compute"] > 1.2 * adapted.parts["compute"]


def test_fp8_products_are_faster_where_the_card_has_them() -> None:
    bf16 = timed(micro_batch=4, hardware=machines("h100-80gb-sxm"))
    for recipe in ("tensorwise", "rowwise", "mx"):
        eight = timed(micro_batch=4, hardware=machines("h100-80gb-sxm"), training=coded(eight_bit=recipe))
        assert eight.seconds < bf16.seconds, recipe
    plain = timed(micro_batch=4)
    assert timed(micro_batch=4, training=coded(eight_bit="tensorwise")).seconds > plain.seconds


def test_a_mixture_computes_what_a_token_meets() -> None:
    """Two experts of eight: more than one dense MLP of that width, less than three."""
    dense = timed(replace(MIXTURE, moe=None), micro_batch=4)
    mixture = timed(MIXTURE, micro_batch=4)
    assert dense.parts["compute"] < mixture.parts["compute"] < 2 * dense.parts["compute"]


def test_tokens_travel_to_their_experts() -> None:
    """With one expert a token, of a dense width: the copies to it and back, 4 c h each way, and a router of one."""
    one = replace(LLAMA_7B, moe=Moe(experts=1, top_k=1, intermediate=11008))
    dense, routed = (setting(arch, micro_batch=4) for arch in (LLAMA_7B, one))
    (here, _), (there, _) = dense.kinds[0], routed.kinds[0]
    more = block_cost(routed, there).rest.forward - block_cost(dense, here).rest.forward
    assert more * dense.machine.memory / dense.tokens == pytest.approx(4 * 2 * 4096 + 3 * 4)


def test_splitting_a_layer_costs_traffic_and_saves_compute() -> None:
    one = timed(target="megatron", micro_batch=8)
    eight = timed(target="megatron", micro_batch=8, world_size=8, tensor_parallel=8)
    assert eight.parts["compute"] < one.parts["compute"] / 5
    assert eight.parts["communication"] > 0
    over = timed(
        target="megatron", micro_batch=8, world_size=16, tensor_parallel=16, hardware=machines(nodes=2, gbit_s=400)
    )
    assert over.parts["communication"] > 2 * eight.parts["communication"]


def test_traffic_inside_a_layer() -> None:
    """Two all-reduces of c T h each way; recomputation repeats the forward ones, selective half of them; async
    tensor parallelism hides them; tensorwise fp8 gathers half the bytes."""
    code: dict[str, Any] = {"sequence_parallel": True, "library": "torchtitan"}
    stated: dict[str, Any] = {"target": "fsdp2", "world_size": 8, "tensor_parallel": 8, "micro_batch": 8}
    with constants_as({"collective_start": 0.0}):
        here = setting(**stated, training=coded(**code))
        one = here.links.reduce(2 * 8 * 4096 * 4096, 8)
        plain = timed(**stated, training=coded(**code)).parts["communication"]
        assert plain == pytest.approx(32 * 4 * one)
        for checkpointing, more in (
            (Checkpointing("full"), 2),
            (Checkpointing("every", 2), 1),
            (Checkpointing("selective"), 1),
        ):
            again = timed(**stated, training=coded(**code), checkpointing=checkpointing).parts["communication"]
            assert again == pytest.approx(32 * (4 + more) * one)
        hidden = timed(**stated, training=coded(**code, hides_tensor_parallel=True)).parts["communication"]
        assert hidden < plain / 2
        narrow = timed(**stated, training=coded(**code, eight_bit="tensorwise")).parts["communication"]
        assert narrow == pytest.approx(0.75 * plain)


def test_products_by_the_generation_of_the_card() -> None:
    """A sweep's best, by what is kept up in training: Hopper's power limit lowers it."""
    for gpu, name in (
        ("a100-80gb-sxm", "sustained"),
        ("h100-80gb-sxm", "sustained_hopper"),
        ("b200-180gb-sxm", "sustained"),
    ):
        card = machines(gpu).gpu
        best = (card.bf16_tflops or 0) * 1e12 * (card.achievable_matmul_fraction or 0)
        assert machine_of(card, "bf16").products == pytest.approx(best * constant(name)), gpu


@pytest.mark.parametrize("kind", ["context_parallel", "ulysses"])
def test_splitting_a_sequence(kind: str) -> None:
    whole = timed(length=65536, world_size=8, target="fsdp2", zero_stage=3)
    ranks: dict[str, Any] = {kind: 8}
    split = timed(length=65536, world_size=8, target="fsdp2", zero_stage=3, **ranks)
    assert split.parts["compute"] < whole.parts["compute"] / 6
    assert split.parts["communication"] > 0
    assert split.tokens_per_second_per_gpu < 1.1 * whole.tokens_per_second_per_gpu


@pytest.mark.parametrize(
    ("of", "whole"),
    [("MistralForCausalLM", 0), ("Gemma2ForCausalLM", 16), ("GptOssForCausalLM", 16), ("Gemma3ForCausalLM", 5)],
)
def test_windows_of_some_layers_only(of: str, whole: int) -> None:
    """Of 32 layers; a causal sequence of s leaves s^2 / 2 pairs, a window of w leaves s w - w^2 / 2."""
    arch = replace(LLAMA_7B, hf_architecture=of, sliding_window=128)
    s, w = 8192, 128
    here = setting(arch, length=s)
    expected = (whole * s * s / 2 + (32 - whole) * (s * w - w * w / 2)) / 32
    assert pairs(here) == pytest.approx(expected * here.plan.micro_batch)
