"""Buffer sizes follow from the model, and each says why."""

from dataclasses import fields
from math import ceil
from pathlib import Path

import pytest
from planner_specs import spec

from dsgen.cli import main
from dsgen.plan import Buckets, Checkpointing, Plan
from dsgen.planner.buckets import DDP_BUCKET, DEEPSPEED_BUCKET, bucket_reasons, buckets_of, swap_of
from dsgen.shapes.resolve import shapes_of
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Method

MODELS = ["gpt2", "llama-2-7b", "llama-3.1-70b", "llama-3.1-405b", "mixtral-8x7b"]


@pytest.fixture(params=MODELS)
def shapes(request: pytest.FixtureRequest) -> Shapes:
    return shapes_of(spec(request.param))


def test_llama_2_7b() -> None:
    buckets = buckets_of(shapes_of(spec("llama-2-7b")), shards=8)
    assert buckets.reduce == 4096 * 11008  # gate, up and down: the largest matrices of a layer
    assert buckets.prefetch == int(0.9 * 4096**2)
    assert buckets.persistence_threshold == 40960
    # two layers of 202,383,360 elements and the prefetched ones
    assert buckets.max_live_parameters == 2 * 202_383_360 + buckets.prefetch
    assert buckets.sub_group_size == 2**28


def test_small_model_gets_no_larger_buckets_than_itself() -> None:
    """A model of 124 million parameters: nothing of DeepSpeed's 5e8 and 1e9 defaults is left."""
    shapes = shapes_of(spec("gpt2"))
    buckets = buckets_of(shapes, shards=4)
    assert buckets.reduce == DDP_BUCKET
    assert buckets.max_live_parameters <= shapes.parameters
    assert buckets.sub_group_size == ceil(shapes.trainable / 4)


@pytest.mark.parametrize("shards", [1, 8, 1024])
@pytest.mark.parametrize("offload", ["none", "cpu", "nvme"])
def test_bounds(shapes: Shapes, shards: int, offload: str) -> None:
    buckets = buckets_of(shapes, shards, offload)  # type: ignore[arg-type]
    assert 0 < buckets.reduce <= min(shapes.trainable, DEEPSPEED_BUCKET)
    assert buckets.allgather % 2 == 0
    assert 0 <= buckets.allgather - buckets.reduce <= 1
    assert buckets.prefetch <= buckets.max_live_parameters <= shapes.parameters
    assert buckets.max_live_parameters >= min(shapes.parameters, 2 * shapes.largest_block)
    assert 0 < buckets.sub_group_size <= (2**27 if offload == "nvme" else 2**28)


def test_low_rank_adapters_make_small_buckets() -> None:
    shapes = shapes_of(spec("llama-2-7b", method=Method(type="lora", rank=8)))
    assert buckets_of(shapes, shards=8).reduce <= shapes.trainable < 30_000_000


@pytest.mark.parametrize("shards", [8, 48, 1024])
def test_a_rank_that_steps_little_steps_it_in_one_group_that_the_linter_knows_as_such(
    shards: int, tmp_path: Path
) -> None:
    """The linter warns of groups below a million elements, into which whole matrices do not go."""
    shapes = shapes_of(spec("llama-2-7b", method=Method(type="lora", rank=8)))
    size = buckets_of(shapes, shards).sub_group_size
    assert size >= shapes.trainable / shards
    path = tmp_path / "ds_config.json"
    path.write_text(
        f'{{"train_batch_size": 8, "zero_optimization": {{"stage": 3, "sub_group_size": {size}}}}}', "utf-8"
    )
    assert main(["lint", str(path), "--isolated"]) == 0


def test_a_swap_buffer_holds_the_largest_shard(shapes: Shapes) -> None:
    for shards in (1, 3, 8):
        swap = swap_of(shapes, shards)
        assert swap.parameter_buffer_size * shards >= shapes.largest_tensor
        assert swap.parameter_buffer_size - 1 < max(2**19, shapes.largest_tensor / shards)


def test_each_size_has_a_reason(shapes: Shapes) -> None:
    plan = Plan(
        world_size=8,
        gpus_per_node=8,
        zero_stage=3,
        precision="bf16",
        checkpointing=Checkpointing(),
        micro_batch=1,
        accumulation=1,
        buckets=buckets_of(shapes, 8),
    )
    reasons = bucket_reasons(plan, shapes)
    assert set(reasons) == {field.name for field in fields(Buckets)}
    assert all(reasons.values())
