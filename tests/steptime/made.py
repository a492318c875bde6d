"""Small worlds for tests of the step time: everything stated."""

from dataclasses import replace
from typing import Any

from architectures import GPT_2_XL, LLAMA_2_7B

from dsgen.facts.gpus import find_gpu
from dsgen.formats.deepspeed.read.sizes import default_buckets
from dsgen.hardware import Hardware
from dsgen.plan import Checkpointing, Plan
from dsgen.shapes.lora import with_method
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Code, Method, Training
from dsgen.steptime.account import step_time
from dsgen.steptime.setting import Setting, setting_of
from dsgen.steptime.values import StepTime
from dsgen.target import Target

LLAMA_7B, GPT_2 = LLAMA_2_7B, GPT_2_XL
BUCKETS = default_buckets("0.19.8")


def plan(**given: Any) -> Plan:
    """One GPU, nothing sharded, one sample at a time, unless stated."""
    stated: dict[str, Any] = {
        "world_size": 1,
        "gpus_per_node": 8,
        "zero_stage": 0,
        "precision": "bf16",
        "checkpointing": Checkpointing(),
        "micro_batch": 1,
        "accumulation": 1,
        "buckets": BUCKETS,
    }
    return Plan(**{**stated, **given})


def machines(gpu: str = "a100-80gb-sxm", *, nodes: int = 1, gbit_s: float | None = 1600) -> Hardware:
    """Nodes of eight, with a network of as many cards."""
    found = find_gpu(gpu)
    assert found is not None
    return Hardware(
        gpu=found,
        gpus_per_node=8,
        nodes=nodes,
        memory_budget=found.memory,
        budget_reason="stated",
        inter_node_gbit_s=gbit_s,
    )


def arguments(
    arch: Architecture = LLAMA_7B,
    *,
    training: Training | None = None,
    length: int = 4096,
    hardware: Hardware | None = None,
    target: str = "ddp",
    **given: Any,
) -> tuple[Any, ...]:
    training = training or Training(attention="flash")
    shapes = with_method(build("model", arch), training.method)
    return plan(**given), shapes, training, length, hardware or machines(), Target(format=target)  # type: ignore[arg-type]


def setting(arch: Architecture = LLAMA_7B, **given: Any) -> Setting:
    return setting_of(*arguments(arch, **given))


def timed(arch: Architecture = LLAMA_7B, **given: Any) -> StepTime:
    return step_time(*arguments(arch, **given))


def lora(rank: int = 16, **given: Any) -> Training:
    return Training(attention="flash", method=Method(type="lora", rank=rank, **given))


def coded(**given: Any) -> Training:
    return Training(attention="flash", code=replace(Code(), **given))
