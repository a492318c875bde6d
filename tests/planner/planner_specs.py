"""Specs for the planner's tests, as reading a spec.yaml would give them."""

from typing import Any

from dsgen.spec.values import HardwareSpec, ModelSizes, ModelSpec, NvmeSpec, Spec, TargetSpec, Training
from dsgen.units import GIB

NVME = NvmeSpec(path="/local_nvme", size=7 * 10**12)


def spec(
    model: str | ModelSizes = "llama-2-7b",
    *,
    gpu: str = "a100-80gb-sxm",
    gpus: int = 8,
    nodes: int = 1,
    host_memory: int | None = 1024 * GIB,
    nvme: NvmeSpec | None = None,
    disk: int | None = None,
    budget: int | None = None,
    want: dict[str, Any] | None = None,
    loaded_by: str = "deepspeed",
    **training: Any,
) -> Spec:
    return Spec(
        file="spec.yaml",
        model=ModelSpec(name=model) if isinstance(model, str) else ModelSpec(sizes=model),
        hardware=HardwareSpec(gpu=gpu, gpus_per_node=gpus, nodes=nodes, host_memory=host_memory, nvme=nvme, disk=disk),
        memory_budget=budget,
        training=Training(**({"sequence_length": 2048, "attention": "sdpa"} | training)),
        want=want or {},
        target=TargetSpec(loaded_by=loaded_by),
    )
