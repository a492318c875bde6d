"""States and buffers against real DeepSpeed engines.

OBSERVED was measured with deepspeed 0.19.8 and torch 2.13 on two gloo processes (one in the last rows): eight bias-free
linear layers of 256 x 256, reduce_bucket_size 100000, a fused torch AdamW, tensor bytes counted by walking all live
tensors (resident) and with a dispatch mode (largest during the optimizer step), in bytes a parameter. CPU and GPU are
one place there, so offloaded rows compare the sum of both.
"""

from dataclasses import replace

import pytest
from worlds import BUCKETS, LLAMA_2_7B, hardware, plan

from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.plan import Buckets, Swap
from dsgen.shapes.values import Block, Shapes, Tensor
from dsgen.spec.values import Training
from dsgen.target import Target

LAYERS, WIDTH = 8, 256
PARAMETERS = LAYERS * WIDTH**2
SMALL = Buckets(
    reduce=100_000,
    allgather=100_000,
    prefetch=50_000,
    max_live_parameters=100_000,
    max_reuse_distance=100_000,
    persistence_threshold=1000,
    sub_group_size=10**9,
)

# stage, precision, ranks, accumulation, offload -> resident, during the step
OBSERVED = [
    ((0, "bf16", 2, 1, "none"), 14.002, 24.002),  # with DeepSpeed's FusedAdam, which decides the wrapper at stage 0
    ((1, "bf16", 2, 1, "none"), 8.002, 12.002),
    ((1, "bf16", 2, 2, "none"), 8.002, 12.002),
    ((2, "bf16", 2, 1, "none"), 8.002, 12.002),
    ((2, "bf16", 2, 2, "none"), 8.002, 12.002),
    ((3, "bf16", 2, 1, "none"), 8.383, 11.384),
    ((3, "bf16", 2, 2, "none"), 8.383, 11.384),
    ((1, "fp32", 2, 1, "none"), 10.004, 14.004),
    ((2, "fp32", 2, 1, "none"), 10.004, 14.004),
    ((3, "fp32", 2, 1, "none"), 10.767, 12.767),
    ((1, "bf16", 2, 1, "cpu"), 11.502, 11.502),
    ((2, "bf16", 2, 1, "cpu"), 11.502, 11.502),
    ((2, "bf16", 2, 2, "cpu"), 12.502, 12.502),
    ((3, "bf16", 2, 1, "cpu"), 10.383, 10.384),
    ((1, "bf16", 1, 1, "none"), 14.002, 22.002),
    ((2, "bf16", 1, 1, "none"), 14.002, 22.002),
    ((3, "bf16", 1, 1, "none"), 16.383, 22.384),
]


def linear_layers() -> Shapes:
    block = Block((Tensor("w", (WIDTH, WIDTH)),))
    return Shapes("linear", replace(LLAMA_2_7B, layers=LAYERS), (block,) * LAYERS, ())


def small(stage: int, precision: str, ranks: int, accumulation: int, offload: str) -> Ledger:
    decided = plan(
        zero_stage=stage,
        precision=precision,
        world_size=ranks,
        accumulation=accumulation,
        offload_optimizer=offload,
        buckets=SMALL,
        swap=Swap(pin_memory=False),
    )
    return account(decided, linear_layers(), Training(), 1, hardware(), Target())


@pytest.mark.parametrize(("world", "resident", "step"), OBSERVED, ids=lambda value: str(value))
def test_real_engines(world: tuple[int, str, int, int, str], resident: float, step: float) -> None:
    found = small(*world)
    on_host = sum(
        size for name, size in found.host_per_node.items() if name not in ("processes", "weights while loading")
    )
    stepping = found.device.moments[-1]
    assert stepping.name == "optimizer step"
    live = stepping.total - stepping.parts["framework"] + on_host / world[2]
    assert live / PARAMETERS == pytest.approx(step, abs=0.01)
    # Between steps: no optimizer temporaries, and no gradients but those of stage 3's partition buffer.
    gone = stepping.parts.get("temporaries", 0)
    gone += stepping.parts.get("gradients", 0) if world[0] < 3 else 0
    assert (live - gone) / PARAMETERS == pytest.approx(resident, abs=0.01)


@pytest.mark.parametrize(
    ("stage", "weights", "masters", "states"),
    [(0, 14, 28, 56), (1, 14, 3.5, 7), (2, 14, 3.5, 7), (3, 1.75, 3.5, 7)],
)
def test_sixteen_bit_adam(stage: int, weights: float, masters: float, states: float) -> None:
    """7e9 parameters on 8 GPUs: 2, 4 and 8 bytes a parameter, divided by 8 from the stage on that shards them."""
    shapes = Shapes("flat", replace(LLAMA_2_7B, layers=1), (Block((Tensor("w", (7 * 10**9,)),)),), ())
    decided = plan(zero_stage=stage, buckets=BUCKETS)
    parts = account(decided, shapes, Training(), 1, hardware(), Target()).device.moments[-1].parts
    assert [parts[name] / 1e9 for name in ("parameters", "master_weights", "optimizer_states")] == [
        weights,
        masters,
        states,
    ]


def test_stage_0_step_flattens_fp32_gradients() -> None:
    # fp16/fused_optimizer.py:step: every gradient in fp32, and their flat copy, beside the 16-bit gradients.
    parts = small(0, "bf16", 2, 1, "none").device.moments[-1].parts
    assert parts["temporaries"] == 8 * PARAMETERS
    assert parts["gradients"] == 2 * PARAMETERS


def test_frozen_weights_have_no_states_and_are_sharded_at_stage_3() -> None:
    blocks = (Block((Tensor("w", (8000,), trainable=False), Tensor("lora_A.weight", (80,)))),)
    shapes = Shapes("lora", replace(LLAMA_2_7B, layers=1), blocks, ())
    parts = account(plan(buckets=SMALL), shapes, Training(), 1, hardware(), Target()).device.moments[-1].parts
    assert parts["parameters"] == 2 * 8080 / 8
    assert parts["master_weights"] == 4 * 10
    assert parts["optimizer_states"] == 8 * 10


@pytest.mark.parametrize(("overlap", "buckets"), [(None, 1), (False, 1), (True, 2)])
def test_overlap_doubles_the_bucket_at_stage_2_only_when_asked_for(overlap: bool | None, buckets: int) -> None:
    decided = plan(zero_stage=2, buckets=SMALL, overlap_comm=overlap, accumulation=2)
    found = account(decided, linear_layers(), Training(), 1, hardware(), Target())
    assert found.device.moments[0].parts["buffers"] == buckets * 2 * 100_000
