"""Traffic of data parallelism: volumes of ZeRO's section 7, in elements of a weight, and what hides."""

from dataclasses import replace

import pytest
from made import LLAMA_7B, machines, setting

from dsgen.facts.constants import constant, constants_as
from dsgen.plan import ZeroPP
from dsgen.steptime.setting import Setting
from dsgen.steptime.sharding import Exchange, copies, exchange_of, exposed


def volume(here: Setting, *, accumulation: int = 1) -> float:
    """Bytes of one step over bytes of all weights, on eight GPUs of a node: seconds times the rate, by 7 / 8."""
    with constants_as({"collective_start": 0.0}):
        found = exchange_of(here)
        seconds = accumulation * (found.forward + found.backward) + found.last_backward + found.after
        return seconds * here.links.inside / (2 * here.parameters * 7 / 8)


@pytest.mark.parametrize(
    ("target", "stage", "volumes"),
    [
        ("ddp", 0, 2),
        ("deepspeed", 0, 2),
        ("megatron", 1, 2),
        ("deepspeed", 1, 3),
        ("deepspeed", 2, 3),
        ("deepspeed", 3, 3),
        ("fsdp1", 3, 3),
        ("fsdp2", 3, 3),
        ("fsdp1", 2, 2),
    ],
)
def test_volumes_of_the_stages(target: str, stage: int, volumes: int) -> None:
    """DDP, ZeRO-1, ZeRO-2 and SHARD_GRAD_OP: 2 P; ZeRO-3 and FSDP: 3 P. DeepSpeed's stages 1 and 2 all-reduce what the
    paper reduces and scatters: 3 P, as test_deepspeed_all_reduces_below_stage_3 sees it do."""
    if target == "megatron":
        # Megatron reduces in fp32: as many elements of a gradient, twice the bytes.
        volumes += 1
    assert volume(setting(target=target, zero_stage=stage, world_size=8)) == pytest.approx(volumes)


def test_volumes_with_accumulation() -> None:
    """Four micro-batches: ZeRO-1 talks once, ZeRO-2 all-reduces each, ZeRO-3 gathers and reduces each, FSDP reduces the
    last."""
    for target, stage, volumes in (
        ("deepspeed", 1, 2 + 1),
        ("deepspeed", 2, 4 * 2 + 1),
        ("deepspeed", 3, 4 * 3),
        ("fsdp2", 3, 4 * 2 + 1),
    ):
        here = setting(target=target, zero_stage=stage, world_size=8, accumulation=4)
        assert volume(here, accumulation=4) == pytest.approx(volumes), (target, stage)


def test_gradients_in_fp32_weigh_twice() -> None:
    """Two gathers of 16 bits, one reduction of 32."""
    here = setting(target="fsdp2", zero_stage=3, world_size=8, gradient_precision="fp32")
    assert volume(here) == pytest.approx(4)


def test_a_shard_group_leaves_only_gradients_to_the_network() -> None:
    """HSDP: groups of one node; between four nodes an all-reduce of an eighth of the gradients, by each GPU's card."""
    hardware = machines(nodes=4, gbit_s=1600)
    with constants_as({"collective_start": 0.0}):
        here = setting(target="fsdp2", zero_stage=3, world_size=32, shard_group=8, hardware=hardware)
        whole = setting(target="fsdp2", zero_stage=3, world_size=32, hardware=hardware)
        found = exchange_of(here)
        weights = 2 * here.parameters
        inside = weights * 7 / 8 / here.links.inside
        across = 2 * (weights / 8) * 3 / 4 / (here.links.node / 8)
        assert found.forward == pytest.approx(inside)
        assert found.backward == pytest.approx(2 * inside + across)
        assert found.forward < exchange_of(whole).forward


def test_zeropp_halves_gathers_and_quarters_gradients() -> None:
    """qwZ: weights in 8 bits; hpZ: the backward pass gathers inside the node; qgZ: gradients in 4 bits."""
    hardware = machines(nodes=4, gbit_s=400)
    plain = setting(target="deepspeed", zero_stage=3, world_size=32, hardware=hardware)
    with constants_as({"collective_start": 0.0}):
        before = exchange_of(plain)
        quantized = replace(plain, plan=replace(plain.plan, zeropp=ZeroPP(quantized_weights=True)))
        assert exchange_of(quantized).forward == pytest.approx(before.forward / 2)
        near = replace(plain, plan=replace(plain.plan, zeropp=ZeroPP(secondary_partition=8)))
        saved = before.backward - exchange_of(near).backward
        assert saved == pytest.approx(before.forward - 2 * plain.parameters * 7 / 8 / plain.links.inside)
        few = replace(plain, plan=replace(plain.plan, zeropp=ZeroPP(quantized_gradients=True)))
        # Of each GPU's gradients, in a quarter of the bytes, 7/8 stay in the node; what eight have summed crosses once.
        reduced = exchange_of(few).backward - before.forward
        quarter = 2 * plain.parameters / 4
        inside = quarter * 7 / 8 / plain.links.inside
        assert reduced == pytest.approx(inside + quarter / 8 * 3 / 4 / (plain.links.node / 8))
        assert reduced < (before.backward - before.forward) / 2


def test_one_rank_talks_to_nobody() -> None:
    assert exchange_of(setting(target="deepspeed", zero_stage=3)) == Exchange()


def test_frozen_weights_are_gathered_and_have_no_gradients() -> None:
    from made import lora

    here = setting(target="fsdp1", zero_stage=3, world_size=8, training=lora())
    assert volume(here) == pytest.approx(2, rel=0.02)


def test_what_is_hidden() -> None:
    """What is longer than the pass shows, and the contention of what is not."""
    with constants_as({"contention": 0.25}):
        assert exposed(3.0, 2.0) == pytest.approx(1.0 + 0.25 * 2.0)
        assert exposed(1.0, 2.0) == pytest.approx(0.25)
        assert exposed(0.0, 2.0) == 0


def test_deepspeed_hides_below_stage_3_only_on_request() -> None:
    """deepspeed/runtime/zero/config.py: overlap_comm is on at stage 3 by default."""
    for stage, wished, hides in ((1, None, False), (2, None, False), (2, True, True), (3, None, True)):
        here = setting(target="deepspeed", zero_stage=stage, world_size=8, overlap_comm=wished)
        assert exchange_of(here).hides is hides, (stage, wished)


def test_without_zero_deepspeed_hides_nothing_whatever_is_asked() -> None:
    """deepspeed/runtime/engine.py:allreduce_gradients: after the last backward pass, by buffered_allreduce_fallback;
    overlap_comm is a key of ZeRO."""
    for wished in (None, True, False):
        assert not exchange_of(setting(target="deepspeed", zero_stage=0, world_size=8, overlap_comm=wished)).hides


def test_fsdp2_copies_what_it_gathers() -> None:
    """Out of the buffer 4 bytes a weight, twice; into the reduced one 2 + 4."""
    here = setting(LLAMA_7B, target="fsdp2", zero_stage=3, world_size=8, gradient_precision="fp32")
    forward, backward = copies(here)
    rate = here.machine.memory
    assert forward == pytest.approx(4 * here.parameters / rate)
    assert backward == pytest.approx((4 + 6) * here.parameters / rate)
    assert copies(setting(target="deepspeed", zero_stage=3, world_size=8)) == (0, 0)
    assert constant("contention") < 1
