"""What is said, and raised, when a plan is illegal or does not fit."""

from collections.abc import Sequence

from dsgen.errors import Problem, RefusedError
from dsgen.legality.check import explain
from dsgen.legality.values import Row
from dsgen.memory.ledger import Fit, Overflow
from dsgen.plan import Plan
from dsgen.planner.values import Candidate, Rejected
from dsgen.spec.values import KeyPath
from dsgen.target import Format
from dsgen.units import format_bytes

_PLACES = {
    "host": "host memory of a node",
    "nvme": "NVMe of a node",
    "disk": "disk",
}

_FSDP2_STAGES = {
    2: "parameters gathered until the backward pass",
    3: "parameters sharded",
}


class IllegalPlanError(RefusedError):
    """A wish that can't be granted whatever the sizes; ``fields`` says which wishes it is about."""

    def __init__(self, plan: Plan, rows: Sequence[Row]) -> None:
        super().__init__(*(Problem(f"{explain(row, plan)} [{row.name}]") for row in rows))
        self.rows = tuple(rows)


class WishError(RefusedError):
    """A wish that can't be met whatever the sizes; ``path`` is where the spec says it."""

    def __init__(self, path: KeyPath, message: str, help: str) -> None:
        super().__init__(Problem(message, help=help))
        self.path = path


class NothingFitsError(RefusedError):
    """Every legal plan overflows; ``closest`` is the one that misses by least."""

    def __init__(
        self,
        closest: Candidate,
        rejected: tuple[Rejected, ...],
        help: str | None = None,
        format: Format = "deepspeed",
    ) -> None:
        weighed = sum(entry.candidate is not None for entry in rejected)
        tried = "this does not fit" if weighed == 1 else f"none of {weighed} plans fits; the closest"
        super().__init__(Problem(f"{tried}: {refusal(closest, format)}", help=help))
        self.closest = closest
        self.rejected = rejected
        self.format = format


def plan_name(plan: Plan, format: Format = "deepspeed") -> str:
    """The levers of a plan in a few words: "ZeRO-2, full checkpointing, optimizer on cpu, micro-batch 4 x 8"."""
    kind = plan.checkpointing
    checkpointing = [] if kind.kind == "none" else [f"{kind} checkpointing"]
    words = [stage_name(plan, format), *rank_words(plan), *checkpointing, *offload_words(plan), batch_words(plan)]
    return ", ".join(words)


def rank_words(plan: Plan) -> list[str]:
    """How ranks are split beside data parallelism."""
    sizes = {
        "tensor parallel": plan.tensor_parallel,
        "pipeline": plan.pipeline_parallel,
        "context parallel": plan.context_parallel,
        "Ulysses": plan.ulysses,
        "expert parallel": plan.expert_parallel,
        "hpZ": plan.zeropp.secondary_partition,
    }
    words = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    words += [
        name
        for name, used in (("qwZ", plan.zeropp.quantized_weights), ("qgZ", plan.zeropp.quantized_gradients))
        if used
    ]
    if plan.shard_group is not None:
        words.append(f"sharded in groups of {plan.shard_group}")
    if plan.reduce_each_micro_batch:
        words.append("reduced every micro-batch")
    return words


def slower_words(candidate: Candidate, chosen: Candidate) -> str:
    """What another plan costs beside the chosen one: "12 % slower (3,105 tokens/s a GPU), 4.2 GiB less"."""
    ratio = candidate.speed / chosen.speed
    less = candidate.ledger.device.peak - chosen.ledger.device.peak
    memory = f"{format_bytes(abs(less))} {'more' if less > 0 else 'less'} memory" if less else "the same memory"
    return f"{_ratio_words(ratio)} ({speed_words(candidate.speed)}), {memory}"


def _ratio_words(ratio: float) -> str:
    change = (1 - ratio) * 100
    if abs(change) < 0.05:
        return "as fast"
    shown = f"{abs(change):.0f}" if abs(change) >= 10 else f"{abs(change):.1f}"
    return f"{shown} % {'slower' if change > 0 else 'faster'}"


def speed_words(speed: float) -> str:
    """Tokens per second and GPU as people say them."""
    return f"{speed:,.0f} tokens/s a GPU" if speed >= 100 else f"{speed:.3g} tokens/s a GPU"


def stage_name(plan: Plan, format: Format = "deepspeed") -> str:
    """ZeRO-1, 2, 3; stage 0 by what it is: plain data parallelism, or a single GPU; FSDP2 by what it does."""
    if format == "fsdp2" and plan.zero_stage in _FSDP2_STAGES:
        return f"FSDP2, {_FSDP2_STAGES[plan.zero_stage]} (ZeRO-{plan.zero_stage})"
    if plan.zero_stage:
        return f"ZeRO-{plan.zero_stage}"
    return "DDP (ZeRO-0)" if plan.world_size > 1 else "one GPU (ZeRO-0)"


def offload_words(plan: Plan) -> list[str]:
    """What lies elsewhere than on the GPU."""
    places = {"optimizer": plan.offload_optimizer, "parameters": plan.offload_parameters}
    return [f"{what} on {place}" for what, place in places.items() if place != "none"]


def batch_words(plan: Plan) -> str:
    """Micro-batch and accumulation."""
    return f"micro-batch {plan.micro_batch} x {plan.accumulation}"


def refusal(candidate: Candidate, format: Format = "deepspeed") -> str:
    """Why a candidate does not fit: place, moment, the largest part there, and by how much."""
    return f"{plan_name(candidate.plan, format)}: {overflow_words(candidate.fit)}"


def overflow_words(fit: Fit) -> str:
    """Each place that is too small, in words."""
    return "; ".join(_overflow(overflow) for overflow in fit.overflows)


def _overflow(overflow: Overflow) -> str:
    limit = "budget" if overflow.place == "device" else _PLACES[overflow.place]
    moment = f" at the {overflow.moment}" if overflow.moment else ""
    part = f"{overflow.largest_part} {format_bytes(overflow.largest_part_bytes)}"
    return (
        f"{format_bytes(overflow.needed)} of {format_bytes(overflow.available)} {limit}{moment}; "
        f"largest part {part} (over by {format_bytes(overflow.by)})"
    )
