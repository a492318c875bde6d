"""Plans written by hand, so that these tests need no planner."""

import json
from typing import Any

from dsgen.facts.gpus import find_gpu
from dsgen.formats.deepspeed.write import write
from dsgen.formats.values import Written
from dsgen.hardware import Hardware
from dsgen.plan import Buckets, Checkpointing, Plan
from dsgen.shapes.resolve import shapes_of
from dsgen.spec.values import HardwareSpec, Method, ModelSpec, Spec, Training
from dsgen.target import Loader, Target

BUCKETS = Buckets(
    reduce=16_777_216,
    allgather=16_777_218,
    prefetch=15_099_494,
    max_live_parameters=420_000_000,
    max_reuse_distance=410_000_000,
    persistence_threshold=40_960,
    sub_group_size=268_435_456,
)


def spec(model: str = "llama-2-7b", method: Method | None = None) -> Spec:
    return Spec(
        file="spec.yaml",
        model=ModelSpec(name=model),
        hardware=HardwareSpec(gpu="a100-80gb-sxm"),
        training=Training(method=method or Method()),
    )


def plan(**fields: Any) -> Plan:
    base: dict[str, Any] = {
        "world_size": 8,
        "gpus_per_node": 8,
        "zero_stage": 2,
        "precision": "bf16",
        "checkpointing": Checkpointing("none"),
        "micro_batch": 2,
        "accumulation": 4,
        "buckets": BUCKETS,
    }
    return Plan(**base | fields)


def hardware(gpu: str = "a100-80gb-sxm", **fields: Any) -> Hardware:
    card = find_gpu(gpu)
    assert card is not None
    base: dict[str, Any] = {
        "gpu": card,
        "gpus_per_node": 8,
        "nodes": 1,
        "memory_budget": card.memory,
        "budget_reason": "all of the card",
        "nvme_path": "/local_nvme",
    }
    return Hardware(**base | fields)


def written(
    *,
    loaded_by: Loader = "deepspeed",
    training: Training | None = None,
    model: str = "llama-2-7b",
    on: Hardware | None = None,
    folder: bool = False,
    **fields: Any,
) -> Written:
    """What ``write`` makes of PLAN with these fields changed."""
    training = training or Training()
    return write(
        plan(**fields),
        shapes_of(spec(model, training.method)),
        training,
        Target(loaded_by=loaded_by),
        on or hardware(),
        4096,
        folder=folder,
    )


def config(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written(**changes).files["ds_config.json"])
    return found
