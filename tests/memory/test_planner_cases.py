"""Amounts that people met in practice, with the numbers said in their reports."""

from dataclasses import replace

import pytest
from worlds import GIB, GPT_7B, LLAMA_2_7B, hardware, ledger, plan

from dsgen.memory.account import account
from dsgen.memory.activations import checkpointed
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.activations.kernels import Kernels
from dsgen.memory.fit import fit
from dsgen.memory.ledger import Ledger
from dsgen.memory.setting import setting_of
from dsgen.plan import Buckets, Checkpointing
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
