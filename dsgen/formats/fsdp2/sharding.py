"""sharding.py: the module with ``shard(model, mesh, blocks)``."""

from collections.abc import Iterator
from pathlib import Path

from dsgen.facts.versions import libraries
from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.templating import render
from dsgen.formats.torch_names import DTYPES
from dsgen.legality.frozen import keeps_frozen_in_16_bit

TEMPLATE = "fsdp2/sharding.py.j2"


def sharding(order: CodeOrder, templates: Path | None) -> str:
    """The module's text; it knows the plan, and of the model only its name."""
    plan = order.plan
    offloads, prefetches = plan.offload_parameters == "cpu", _prefetches(order)
    mixed = plan.precision != "fp32"
    wanted = {
        "CPUOffloadPolicy": offloads,
        "FSDPModule": prefetches,
        "MixedPrecisionPolicy": mixed,
        "fully_shard": True,
    }
    values = {
        "model": order.shapes.name,
        "summary": tuple(_summary(order)),
        "executed": libraries()["torch"].executed,
        "stage": plan.zero_stage,
        "precision": plan.precision,
        "dtype": DTYPES[plan.precision],
        "checkpointing": plan.checkpointing,
        "selective": plan.checkpointing.kind == "selective",
        "offload": offloads,
        "frozen": mixed
        and order.shapes.trainable < order.shapes.parameters
        and keeps_frozen_in_16_bit(order.case.target),
        "prefetch": prefetches,
        "shard_group": order.shard_group,
        "imports": [name for name, used in wanted.items() if used],
    }
    return render(TEMPLATE, values, templates)


def _prefetches(order: CodeOrder) -> bool:
    """Whether to ask for the next layer's weights ahead of time in the forward pass.

    FSDP2 issues a layer's gather when the CPU reaches that layer. The CPU is far ahead of the GPU, so the gather
    hides behind the layer before, unless something makes the CPU wait in every layer. A router does: how many tokens
    an expert gets (torch.where) is known only when the GPU has got there. In the backward pass FSDP2 asks one
    layer ahead by itself (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:_backward_prefetch).
    """
    return order.shapes.architecture.moe is not None and order.plan.shards > 1


def _summary(order: CodeOrder) -> Iterator[str]:
    plan = order.plan
    yield f"{plan.world_size} GPU{'s' if plan.world_size > 1 else ''}, ZeRO stage {plan.zero_stage}, {plan.precision}"
    if order.shard_group is not None:
        yield f"weights sharded over groups of {order.shard_group} GPUs, and replicated between groups (HSDP)"
    if plan.checkpointing.kind != "none":
        yield f"activation checkpointing: {plan.checkpointing}"
    if plan.offload_parameters == "cpu":
        yield "weights, gradients and optimizer states in host memory"
