"""What a spec asks beside plain training, as the ledger counts it: residents, weights in few bits, frozen parts."""

from dataclasses import replace

import pytest

from dsgen.facts.gpus import find_gpu
from dsgen.facts.models import models
from dsgen.hardware import Hardware
from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.plan import Checkpointing, Plan
from dsgen.planner.buckets import buckets_of
from dsgen.shapes.freeze import with_freeze
from dsgen.shapes.from_row import from_row
from dsgen.shapes.lora import with_method
from dsgen.spec.values import Method, Resident, Training
from dsgen.steptime.account import step_time
from dsgen.target import Target

LLAMA = from_row(models()["llama-2-7b"])
BLOCK_MATRICES = 4 * 4096**2 + 3 * 4096 * 11008
NORMS = 65 * 4096
EMBEDDINGS = 2 * 32_000 * 4096
PLAIN = Training()


def hardware() -> Hardware:
    gpu = find_gpu("a100-80gb-sxm")
    assert gpu is not None
    return Hardware(gpu=gpu, gpus_per_node=8, nodes=1, memory_budget=gpu.memory, budget_reason="all", nvme_path=None)


def plan(stage: int) -> Plan:
    return Plan(
        world_size=8,
        gpus_per_node=8,
        zero_stage=stage,
        precision="bf16",
        checkpointing=Checkpointing("none"),
        micro_batch=1,
        accumulation=1,
        buckets=buckets_of(LLAMA, 8),
    )


def ledger(stage: int = 2, training: Training = PLAIN, freeze: tuple[str, ...] = ()) -> Ledger:
    shapes = with_freeze(with_method(LLAMA, training.method), freeze, lambda _: None)
    return account(plan(stage), shapes, training, 2048, hardware(), Target())


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_a_reference_model_is_whole_below_stage_3_and_sharded_there(stage: int) -> None:
    beside = ledger(stage, Training(residents=(Resident(what="reference model", model="same"),))).device
    for moment in beside.moments:
        assert moment.parts["residents"] == 2 * LLAMA.parameters // (8 if stage == 3 else 1)
    assert beside.allocated - ledger(stage).device.allocated == beside.moments[0].parts["residents"]


def test_a_reference_of_adapted_weights_has_no_adapters() -> None:
    training = Training(method=Method(type="lora"), residents=(Resident(what="reference model", model="same"),))
    assert ledger(2, training).device.peak_moment.parts["residents"] == 2 * LLAMA.parameters


def test_another_model_has_its_own_size() -> None:
    other = Resident(what="reward model", model="tinyllama-1.1b", parameters=1_100_048_384)
    assert ledger(2, Training(residents=(other,))).device.peak_moment.parts["residents"] == 2 * 1_100_048_384


def test_a_programs_share_is_of_the_card_and_no_tensor_of_ours() -> None:
    alone = ledger(2).device
    beside = ledger(2, Training(residents=(Resident(what="vllm", share=0.3), Resident(what="x", reserve=2**30)))).device
    wanted = round(0.3 * hardware().gpu.memory) + 2**30
    assert beside.peak_moment.parts["residents"] == wanted
    assert beside.peak - alone.peak == wanted
    assert beside.allocated == alone.allocated
    assert beside.high - beside.peak == alone.high - alone.peak  # what is promised has no band


@pytest.mark.parametrize(("name", "bits"), [("nf4", 4 + 8 * 1.015625 / 64), ("gptq8", 8 + 8 * 3 / 128)])
def test_quantised_blocks_and_16_bit_rest_under_deepspeed(name: str, bits: float) -> None:
    made = ledger(2, Training(method=Method(type="lora", quantization=name)))
    adapters = with_method(LLAMA, Method(type="lora")).trainable
    expected = 32 * BLOCK_MATRICES * bits / 8 + 2 * (NORMS + EMBEDDINGS + adapters)
    assert made.device.peak_moment.parts["parameters"] == pytest.approx(expected, abs=1)


def test_one_matrix_is_rebuilt_while_a_block_runs_backwards() -> None:
    training = Training(method=Method(type="lora", quantization="nf4"), loss="fused_linear")
    shapes = with_method(LLAMA, training.method)
    eager = replace(plan(2), checkpointing=Checkpointing("full"), micro_batch=16)
    peak = account(eager, shapes, training, 2048, hardware(), Target()).device.peak_moment
    assert peak.name == "backward"
    assert peak.parts["gathered_parameters"] == 2 * 4096 * 11008


def test_frozen_layers_at_the_start_keep_nothing_and_their_backward_pass_is_not_run() -> None:
    frozen = ("embed_tokens", "layers.?", "layers.1[0-5]")
    full, half = ledger(2), ledger(2, freeze=frozen)
    kept = [made.device.moments[0].parts["activations"] for made in (full, half)]
    outside = kept[0] - 2 * (kept[0] - kept[1])  # of 32 equal blocks 16 are gone
    assert 0 < outside < kept[0] / 32
    shapes = with_freeze(LLAMA, frozen, lambda _: None)
    seconds = [
        step_time(plan(2), made, Training(), 2048, hardware(), Target()).parts["compute"] for made in (LLAMA, shapes)
    ]
    assert 0.6 < seconds[1] / seconds[0] < 0.7  # a forward pass of both halves, a backward pass of one: 4 of 6


def test_frozen_layers_behind_trained_ones_pass_gradients_on() -> None:
    last = ledger(2, freeze=("layers.31", "lm_head"))
    first = ledger(2, freeze=("embed_tokens", "layers.0"))
    kept = [made.device.moments[0].parts["activations"] for made in (first, last)]
    assert kept[0] < kept[1]
