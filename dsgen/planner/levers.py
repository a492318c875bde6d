"""Which lever each part of the ledger answers to."""

from dsgen.memory.ledger import Overflow
from dsgen.plan import Plan
from dsgen.planner.values import Candidate
from dsgen.target import Format
from dsgen.units import format_bytes

# Which lever a part answers to, the cheapest first.
LEVERS: dict[str, str] = {
    "parameters": "ZeRO-3 or tensor parallelism",
    "gathered_parameters": "smaller live and prefetched parameters, or tensor parallelism",
    "gradients": "ZeRO-2",
    "master_weights": "ZeRO-1",
    "optimizer_states": "ZeRO-1",
    "activations": "checkpointing, a smaller micro-batch with more accumulation, or Ulysses or context parallelism",
    "logits": "a smaller micro-batch with more accumulation, or Ulysses or context parallelism",
    "buffers": "smaller buckets",
    "temporaries": "ZeRO-1, or smaller sub-groups at stage 3",
    "residents": "moving them to other cards",
    "framework": "a larger card",
}


def lever_of(overflow: Overflow, plan: Plan, format: Format = "deepspeed") -> str:
    """What makes the largest part of an overflow smaller, beyond what the plan does already."""
    return _lever(overflow.largest_part, plan, format) if overflow.place == "device" else "more of it, or less offload"


def _lever(part: str, plan: Plan, format: Format) -> str:
    if part == "gathered_parameters" and plan.zero_stage < 3:
        return "ZeRO-3, which gathers weights layer by layer"
    sharded = {"optimizer_states": 1, "master_weights": 1, "temporaries": 1, "gradients": 2, "parameters": 3}
    stage = 3 if format == "fsdp2" else plan.zero_stage  # which shards everything at either of its stages
    if stage >= sharded.get(part, 4):
        return "more GPUs to shard over, or offload"
    return LEVERS[part]


def breakdown(closest: Candidate, format: Format) -> tuple[str, ...]:
    """What fills the GPU where nothing fits: every part that takes a tenth of the peak, and what it answers to."""
    device = closest.ledger.device
    found = []
    for part, size in sorted(device.peak_moment.parts.items(), key=lambda each: -each[1]):
        if size * 10 >= device.peak:
            lever = _lever(part, closest.plan, format)
            share = f"{format_bytes(size)}, {size / device.peak * 100:.0f} % of the peak"
            found.append(f"{part.replace('_', ' ').capitalize()}: {share}; answers to {lever}.")
    return tuple(found)
