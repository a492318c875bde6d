"""States of the simulation against arithmetic: P parameters, W ranks, fp32 shards and Adam are 12 P / W bytes."""

import pytest
from grid import FULL, Case
from worlds import GIB

from dsgen.spec.values import Optimizer, Training


def test_fsdp2_keeps_twelve_bytes_a_parameter_over_the_ranks() -> None:
    """The 8.03 billion parameters of Llama-3.1-8B on 8 GPUs: 3.739 GiB of shards, twice as much for Adam; the step, by
    one kernel, has as much again in gradients. At the loss there are also the whole root (1.05 billion elements of
    bf16, 1.957 GiB) and the logits three times in fp32 (12 V s, 5.87 GiB)."""
    case = Case("fsdp2", "llama-3.1-8b", {"checkpointing": FULL}, sequence=4096)
    parameters = 8_030_261_248
    assert case.shapes.parameters == parameters
    simulation = case.simulated()
    shard = 4 * parameters / 8
    assert shard / GIB == pytest.approx(3.739, abs=0.001)
    assert simulation.resident == pytest.approx(3 * shard, rel=1e-4)
    assert simulation.resident_parts["parameters"] == pytest.approx(shard, rel=1e-4)
    assert simulation.resident_parts["optimizer_states"] == pytest.approx(2 * shard, rel=1e-4)
    step = next(moment for moment in simulation.moments if moment.name == "optimizer step")
    assert step.total == pytest.approx(4 * shard, rel=1e-4)
    logits = 12 * 128_256 * 4096
    assert simulation.peak > 3 * shard + 2 * 2 * 128_256 * 4096 + logits
    # 33 units gathered twice, but the root, which stays; each reduced once; one norm of the gradient.
    assert simulation.collectives == {"all_gather": 65, "reduce_scatter": 33, "all_reduce": 1}


def test_a_step_by_tensor_operations_takes_a_copy_more() -> None:
    """foreach: the square roots of all second moments at once, 4 P / W beside 16 P / W."""
    training = Training(attention="sdpa", optimizer=Optimizer(step="foreach"))
    case = Case("fsdp2", "llama-2-7b", training=training, sequence=64, layers=4)
    step = next(moment for moment in case.simulated().moments if moment.name == "optimizer step")
    assert step.total == pytest.approx(20 * case.shapes.parameters / 8, rel=1e-3)
