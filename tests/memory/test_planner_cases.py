"""Amounts that people met in practice, with the numbers said in their reports."""

from dataclasses import replace

import pytest
from worlds import GIB, GPT_7B, LLAMA_2_7B, hardware, ledger, plan, shapes_of

from dsgen.memory.account import account
from dsgen.memory.activations import checkpointed
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.activations.kernels import Kernels
from dsgen.memory.fit import fit
from dsgen.memory.ledger import Ledger
from dsgen.memory.setting import setting_of
from dsgen.plan import Buckets, Checkpointing, Swap
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Block, Shapes, Tensor
from dsgen.spec.values import Training
from dsgen.target import Target

BUCKETS_045 = Buckets(
    reduce=50_000_000,
    allgather=200_000_000,
    prefetch=10**7,
    max_live_parameters=10**9,
    max_reuse_distance=10**9,
    persistence_threshold=10**5,
    sub_group_size=10**9,
)


def br_045(**changes: object) -> Ledger:
    """36 layers, hidden 4096, s 1024, micro-batch 4, unfused attention, fp16, Adam, ZeRO-2 on 16 GPUs."""
    base = {
        "zero_stage": 2,
        "world_size": 16,
        "precision": "fp16",
        "micro_batch": 4,
        "buckets": BUCKETS_045,
        "checkpointing": Checkpointing(),
    }
    return ledger(GPT_7B, Training(attention="eager"), s=1024, **(base | changes))


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case BR-045 counts Megatron's kernels, not those of Hugging Face's GPT-2."""
    megatron = Kernels(dropout=True, softmax_in_fp32=False)
    monkeypatch.setattr(checkpointed, "kernels_of", lambda *_: megatron)


FORTY = hardware(nodes=2, memory_budget=int(39.4 * GIB))


def test_br_045_activations_overflow() -> None:
    """Case BR-045: s b h (34 + 5 a s / h) = 1.24 GB a layer, 45 GB in all; states 23 GB fit 40 GB, both do not."""
    found = br_045()
    parts = found.device.peak_moment.parts
    assert parts["activations"] / 1e9 == pytest.approx(45, rel=0.02)
    states = sum(parts[name] for name in ("parameters", "master_weights", "optimizer_states"))  # gradients grow behind
    assert states / 1e9 == pytest.approx(2 * 7.4 + 12 * 7.4 / 16, rel=0.02)
    verdict = fit(found, FORTY)
    assert not verdict.fits
    assert [(overflow.place, overflow.largest_part) for overflow in verdict.overflows] == [("device", "activations")]


def test_br_045_one_layer() -> None:
    decided = plan(zero_stage=2, world_size=16, micro_batch=4, precision="fp16", checkpointing=Checkpointing())
    training = Training(attention="eager")
    setting = setting_of(decided, build("gpt", GPT_7B), training, 1024, hardware(), Target())
    assert activations(setting).layers[0].kept / 1e9 == pytest.approx(1.24, rel=0.01)


def test_br_045_fits_with_checkpointing() -> None:
    """About 1.2 GB kept and 1.2 GB for one layer."""
    found = br_045(checkpointing=Checkpointing("full"))
    assert fit(found, FORTY).fits
    setting = setting_of(
        plan(zero_stage=2, world_size=16, micro_batch=4, precision="fp16"),
        build("gpt", GPT_7B),
        Training(attention="eager"),
        1024,
        hardware(),
        Target(),
    )
    layers = activations(setting).layers
    assert sum(layer.kept for layer in layers) / 1e9 == pytest.approx(1.2, rel=0.02)
    assert layers[0].extra / 1e9 == pytest.approx(1.24, rel=0.5)  # and the transients of its backward pass


def test_br_048_buckets_are_larger_than_all_gradients() -> None:
    """Case BR-048: 110e6 parameters, two buckets of 5e8 x 2 bytes = 2 GB, while all gradients are 0.22 GB."""
    blocks = (Block((Tensor("w", (1_000_000,)),)),) * 110
    shapes = Shapes("encoder", replace(LLAMA_2_7B, layers=110), blocks, ())
    buckets = replace(BUCKETS_045, reduce=500_000_000, allgather=500_000_000)
    decided = plan(zero_stage=2, world_size=4, gpus_per_node=2, precision="fp16", buckets=buckets, overlap_comm=True)
    backward = account(decided, shapes, Training(), 1, hardware(), Target()).device.moments[1]
    # Beside the two buckets, the flat copy that the reduction makes of what there is.
    assert backward.parts["buffers"] == 2 * 10**9 + 220_000_000
    smaller = replace(decided, buckets=replace(buckets, reduce=50_000_000))
    backward = account(smaller, shapes, Training(), 1, hardware(), Target()).device.moments[1]
    assert backward.parts["buffers"] == 3 * 100_000_000


SWAPPED = replace(BUCKETS_045, sub_group_size=10**9)


def test_br_020_pinned_buffers_fill_the_host() -> None:
    """Case BR-020: 5 x 1e9 x 2 bytes of parameter buffers, 1e9 x 2 bytes of parameters in RAM, 4 buffers of a sub-group
    of 1e9 x 4 bytes: about 28 GB of 32, before the gradients."""
    swap = Swap(parameter_buffers=5, parameter_buffer_size=10**9, max_in_cpu=10**9, optimizer_buffers=4)
    nvme = {"offload_optimizer": "nvme", "offload_parameters": "nvme"}
    found = ledger(LLAMA_2_7B, world_size=1, gpus_per_node=1, buckets=SWAPPED, swap=swap, **nvme).host_per_node
    assert found["parameter swap buffers"] == 10 * 10**9
    assert found["parameters"] == 2 * 10**9
    # A group ends with the tensor that fills it, so it is a little larger than asked for.
    assert found["optimizer swap buffers"] / 1e9 == pytest.approx(16, rel=0.02)
    smaller = Swap(parameter_buffers=5, parameter_buffer_size=10**8, max_in_cpu=10**8, optimizer_buffers=4)
    few = replace(SWAPPED, sub_group_size=10**8)
    less = ledger(LLAMA_2_7B, world_size=1, gpus_per_node=1, buckets=few, swap=smaller, **nvme).host_per_node
    kept = ("parameter swap buffers", "parameters", "optimizer swap buffers")
    assert sum(less[name] for name in kept) < 4.1e9 < 28e9 < sum(found[name] for name in kept)


@pytest.mark.parametrize(("size", "gigabytes"), [(10**9, 16), (10**12, 80)])
def test_br_050_one_sub_group_holds_all_of_a_rank(size: int, gigabytes: int) -> None:
    """Case BR-050: 1e9 x 16 bytes a rank, or 40e9 x 16 / 8 ranks = 80 GB where one group holds everything."""
    blocks = (Block((Tensor("w", (5_000_000, 8)),)),) * 1000
    shapes = Shapes("40B", replace(LLAMA_2_7B, layers=1000), blocks, ())
    decided = plan(offload_optimizer="nvme", buckets=replace(SWAPPED, sub_group_size=size))
    found = account(decided, shapes, Training(), 1, hardware(), Target()).host_per_node
    assert found["optimizer swap buffers"] / 8 == gigabytes * 10**9


def test_br_084_whole_weights_beside_sharded_states() -> None:
    """Case BR-084: 16 bytes x 13e9 / 8 = 26 GB and whole bf16 weights 26 GB do not fit 40 GB; with FULL_SHARD the
    states and about two layers do."""
    arch = replace(LLAMA_2_7B, layers=40, hidden=5120, heads=40, kv_heads=40, intermediate=13824)
    training = Training(attention="flash")

    def moments(stage: int) -> Ledger:
        decided = plan(zero_stage=stage)
        return account(decided, shapes_of(arch, training), training, 2048, hardware(), Target(format="fsdp2"))

    whole, sharded = moments(2), moments(3)
    assert whole.device.moments[0].parts["gathered_parameters"] / 1e9 == pytest.approx(26, rel=0.01)
    step = {name: size for name, size in whole.device.moments[2].parts.items() if name != "framework"}
    assert sum(step.values()) / 1e9 == pytest.approx(16 * 13.016 / 8, rel=0.01)
    assert not fit(whole, FORTY).fits
    assert fit(sharded, FORTY).fits
    two_layers = 2 * 2 * (4 * 5120**2 + 3 * 5120 * 13824)
    root = 2 * 2 * 32000 * 5120
    assert sharded.device.moments[1].parts["gathered_parameters"] == pytest.approx(root + two_layers, rel=0.01)
