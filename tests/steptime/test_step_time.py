"""The whole step: its parts, conventions and directions."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from made import GPT_2, LLAMA_7B, arguments, coded, lora, machines, timed

from dsgen.facts.constants import constant, constants_as
from dsgen.plan import Checkpointing
from dsgen.shapes.lora import with_method
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Mla, Moe
from dsgen.spec.values import Method, Optimizer, Training
from dsgen.steptime.flops import model_flops
from dsgen.steptime.machine import machine_of
from dsgen.steptime.values import TIME_PARTS

MIXTURE = replace(LLAMA_7B, intermediate=14336, kv_heads=8, moe=Moe(experts=8, top_k=2, intermediate=14336))
LATENT = replace(
    LLAMA_7B,
    mla=Mla(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
)


def test_tokens_over_seconds() -> None:
    found = timed(world_size=8, target="fsdp2", zero_stage=3, micro_batch=2, accumulation=4)
    assert found.tokens_per_second_per_gpu * found.seconds * 8 == pytest.approx(2 * 4 * 8 * 4096)
    assert found.low < found.seconds < found.high
    assert set(found.parts) == set(TIME_PARTS)


def test_the_band_is_wider_where_the_step_waits() -> None:
    """A fifth of compute, half of traffic and launches: a small batch of a small model waits for its launches."""
    busy, waiting = timed(micro_batch=8), timed(GPT_2, length=128)
    for found in (busy, waiting):
        assert found.high - found.seconds == pytest.approx(found.seconds - found.low)
    assert busy.high / busy.seconds - 1 == pytest.approx(0.2, abs=0.02)
    assert waiting.high / waiting.seconds - 1 > 0.35


def test_model_flops_are_those_of_reports() -> None:
    """6 N + 12 L h s: Llama-2-7B at 4096 tokens 6 x 6.738e9 + 12 x 32 x 4096 x 4096; adapters 4 N + 12 L h s, N with
    them. Of 8 experts a token meets two."""
    shapes = build("model", LLAMA_7B)
    attention = 12 * 32 * 4096 * 4096
    assert model_flops(shapes, Training(), 4096) == 6 * shapes.parameters + attention
    adapted = with_method(shapes, Method(type="lora"))
    assert model_flops(adapted, lora(), 4096) == pytest.approx(4 * adapted.parameters + attention)
    mixture = build("model", MIXTURE)
    experts = 32 * 8 * 3 * 4096 * 14336
    active = mixture.parameters - experts * 6 / 8
    assert model_flops(mixture, Training(), 4096) == pytest.approx(6 * active + attention)


def test_mfu_is_flops_over_the_peak() -> None:
    found = timed()
    shapes = build("model", LLAMA_7B)
    flops = model_flops(shapes, Training(), 4096) * found.tokens_per_second_per_gpu
    assert found.mfu == pytest.approx(flops / 312e12)
    assert 0.3 < (found.mfu or 0) < machine_of(machines().gpu, "bf16").products / 312e12


def test_full_recomputation_runs_the_forward_pass_again() -> None:
    """A backward pass is two forward ones: 4 / 3 of the blocks' time, less than that of the step, which has a head."""
    none = timed(micro_batch=4)
    full = timed(micro_batch=4, checkpointing=Checkpointing("full"))
    half = timed(micro_batch=4, checkpointing=Checkpointing("every", 2))
    assert full.parts["compute"] == none.parts["compute"]
    assert 0.28 < full.parts["recomputation"] / full.parts["compute"] < 0.35
    assert half.parts["recomputation"] == pytest.approx(full.parts["recomputation"] / 2)
    selective = timed(micro_batch=4, checkpointing=Checkpointing("selective"))
    assert 0 < selective.parts["recomputation"] < full.parts["recomputation"] / 2


def test_the_bubble_of_a_pipeline() -> None:
    """(p - 1) / (m v) of the passes of m micro-batches, but for the head, which the last stage has."""
    stated: dict[str, Any] = {"target": "megatron", "world_size": 8, "pipeline_parallel": 8, "accumulation": 16}
    with constants_as({"host_layer_megatron": 0.0, "host_chunk": 0.0, "collective_start": 0.0}):
        plain = timed(**stated)
        chunked = timed(**stated, virtual_stages=4)
        longer = timed(**{**stated, "accumulation": 64})
    share = plain.parts["bubble"] / plain.parts["compute"]
    assert 0.8 * 7 / 16 < share < 7 / 16
    assert chunked.parts["bubble"] == pytest.approx(plain.parts["bubble"] / 4, rel=0.02)
    assert longer.parts["bubble"] == pytest.approx(plain.parts["bubble"])


def test_small_work_is_bound_by_launches() -> None:
    """One sequence of 128 tokens: the host is slower than the GPU; eight times the tokens take hardly longer."""
    small, large = (timed(GPT_2, length=length) for length in (128, 1024))
    assert small.parts["launch"] > small.parts["compute"]
    assert large.seconds < 2 * small.seconds
    compiled = timed(GPT_2, length=128, training=Training(attention="flash", compile=True))
    assert compiled.seconds < small.seconds


def test_adam_on_the_gpu_moves_28_bytes_a_parameter() -> None:
    """fp32: gradient, weight and two moments read, weight and moments written; without clipping."""
    training = Training(attention="flash", gradient_clipping=0.0)
    found = timed(precision="fp32", training=training)
    parameters = build("model", LLAMA_7B).parameters
    memory = machine_of(machines().gpu, "fp32").memory
    assert found.parts["optimizer"] == pytest.approx(28 * parameters / memory)
    foreach = replace(training, optimizer=Optimizer(step="foreach"))
    assert timed(precision="fp32", training=foreach).parts["optimizer"] == pytest.approx(80 * parameters / memory)


def test_shards_share_the_optimizer_step() -> None:
    whole = timed(target="deepspeed", world_size=8)
    shared = timed(target="deepspeed", world_size=8, zero_stage=1)
    assert shared.parts["optimizer"] == pytest.approx(whole.parts["optimizer"] / 8)


def test_offloaded_adam_steps_on_the_host() -> None:
    """Parameters of all ranks of a node over what its processors step; new 16-bit weights come up over PCIe."""
    stated: dict[str, Any] = {"target": "deepspeed", "world_size": 8, "zero_stage": 2, "offload_optimizer": "cpu"}
    found = timed(**stated)
    parameters = build("model", LLAMA_7B).parameters
    assert found.parts["optimizer"] == pytest.approx(parameters / constant("cpu_adam"))
    assert found.parts["offload"] > 2 * parameters / 8 / (31e9 * constant("pcie_share"))
    nvme = timed(**{**stated, "zero_stage": 3, "offload_optimizer": "nvme"})
    # 12 bytes read and written; the step itself hides behind it.
    assert nvme.parts["offload"] + nvme.parts["optimizer"] > 24 * parameters / constant("nvme_rate")


def test_more_work_takes_longer() -> None:
    """Tokens, layers, fewer links: never faster."""
    base: dict[str, Any] = {"world_size": 8, "target": "fsdp2", "zero_stage": 3}
    assert timed(**base).seconds < timed(**base, micro_batch=2).seconds < timed(**base, micro_batch=4).seconds
    slow = machines("a100-80gb-sxm", nodes=4, gbit_s=100)
    fast = machines("a100-80gb-sxm", nodes=4, gbit_s=1600)
    stated: dict[str, Any] = {"world_size": 32, "target": "fsdp2", "zero_stage": 3}
    assert timed(**stated, hardware=fast).seconds < timed(**stated, hardware=slow).seconds
    assert timed(hardware=machines("h100-80gb-sxm")).seconds < timed().seconds


def test_larger_batches_use_a_gpu_better() -> None:
    speeds = [
        timed(world_size=8, target="fsdp2", zero_stage=3, micro_batch=size).tokens_per_second_per_gpu
        for size in (1, 2, 4, 8)
    ]
    assert all(before < after for before, after in pairwise(speeds))


def test_fused_and_compiled_code_is_faster() -> None:
    eager = timed(micro_batch=4)
    fused = timed(micro_batch=4, training=coded(fused=frozenset(("norm", "mlp"))))
    compiled = timed(micro_batch=4, training=Training(attention="flash", compile=True))
    assert compiled.seconds < fused.seconds < eager.seconds


def test_eager_attention_costs_with_the_square_of_the_length() -> None:
    """By the same tokens: scores of eager attention grow with s; flash attention multiplies half of them, and keeps
    none."""

    def share(attention: str, length: int) -> float:
        training = Training(attention=attention)  # type: ignore[arg-type]
        return timed(training=training, length=length, micro_batch=16384 // length).seconds

    eager = share("eager", 8192) - share("eager", 2048)
    flash = share("flash", 8192) - share("flash", 2048)
    assert eager > 4 * flash > 0


@pytest.mark.parametrize("gpu", ["v100-16gb-sxm", "t4", "rtx-4090", "mi300x-192gb", "gaudi2-96gb", "b200-180gb-sxm"])
@pytest.mark.parametrize("arch", [LLAMA_7B, GPT_2, MIXTURE, LATENT], ids=["llama", "gpt2", "mixture", "latent"])
def test_every_card_and_architecture_has_a_time(gpu: str, arch: object) -> None:
    found = timed(arch, hardware=machines(gpu), precision="fp16", length=1024)  # type: ignore[arg-type]
    assert found.seconds > 0
    assert all(seconds >= 0 for seconds in found.parts.values())


def test_what_nobody_states_is_assumed_and_said() -> None:
    hardware = machines(nodes=2, gbit_s=None)
    assert timed(hardware=hardware).notes == ()
    (network,) = timed(hardware=hardware, world_size=16).notes
    assert "1600 Gbit/s a node" in network
    gpu = replace(hardware.gpu, bf16_tflops=None, fp16_tflops=None, fp32_tflops=None, memory_gb_s=None)
    found = timed(hardware=replace(hardware, gpu=gpu))
    assert found.mfu is None
    assert [note.split(" is ")[0] for note in found.notes] == [
        "the GPU's speed in this type",
        "the GPU's memory bandwidth",
    ]


def test_arguments_are_those_of_the_ledger() -> None:
    from dsgen.memory.account import account

    assert account(*arguments()).device.peak > 0
