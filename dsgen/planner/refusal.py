"""What is said, and raised, when a plan is illegal or does not fit."""

from collections.abc import Sequence

from dsgen.errors import Problem, RefusedError
from dsgen.legality.check import explain
from dsgen.legality.values import Row
from dsgen.memory.ledger import Fit, Overflow
from dsgen.plan import Plan
from dsgen.planner.values import Candidate, Rejected
from dsgen.units import GIB

_PLACES = {
    "device": "GPU",
    "host": "host memory of a node",
    "nvme": "NVMe of a node",
    "disk": "disk",
}


class IllegalPlanError(RefusedError):
    """A wish that can't be granted whatever the sizes; ``fields`` says which wishes it is about."""

    def __init__(self, plan: Plan, rows: Sequence[Row]) -> None:
        super().__init__(*(Problem(f"{explain(row, plan)} [{row.name}]") for row in rows))
        self.rows = tuple(rows)


class NothingFitsError(RefusedError):
    """Every legal plan overflows; ``closest`` is the one that misses by least."""

    def __init__(self, closest: Candidate, rejected: tuple[Rejected, ...], help: str | None = None) -> None:
        weighed = sum(entry.candidate is not None for entry in rejected)
        tried = "this does not fit" if weighed == 1 else f"none of {weighed} plans fits; the closest"
        super().__init__(Problem(f"{tried}: {refusal(closest)}", help=help))
        self.closest = closest
        self.rejected = rejected


def gib(count: float) -> str:
    """Bytes in GiB, one decimal; two where there is less than one."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / GIB:.2f} GiB"


def plan_name(plan: Plan) -> str:
    """The levers of a plan in a few words: "ZeRO-2, full checkpointing, optimizer on cpu, micro-batch 4 x 8"."""
    words = ["DDP (ZeRO-0)" if plan.zero_stage == 0 else f"ZeRO-{plan.zero_stage}"]
    if plan.zero_stage == 0 and plan.world_size == 1:
        words = ["one GPU (ZeRO-0)"]
    if plan.checkpointing.kind != "none":
        words.append(f"{plan.checkpointing} checkpointing")
    if plan.offload_optimizer != "none":
        words.append(f"optimizer on {plan.offload_optimizer}")
    if plan.offload_parameters != "none":
        words.append(f"parameters on {plan.offload_parameters}")
    words.append(f"micro-batch {plan.micro_batch} x {plan.accumulation}")
    return ", ".join(words)


def refusal(candidate: Candidate) -> str:
    """Why a candidate does not fit: place, moment, the largest part there, and by how much."""
    return f"{plan_name(candidate.plan)}: {overflow_words(candidate.fit)}"


def overflow_words(fit: Fit) -> str:
    """Each place that is too small, in words."""
    return "; ".join(_overflow(overflow) for overflow in fit.overflows)


def _overflow(overflow: Overflow) -> str:
    limit = "budget" if overflow.place == "device" else _PLACES[overflow.place]
    moment = f" at the {overflow.moment}" if overflow.moment else ""
    return (
        f"{gib(overflow.needed)} of {gib(overflow.available)} {limit}{moment}; largest part {overflow.largest_part} "
        f"{gib(overflow.largest_part_bytes)} (over by {gib(overflow.by)})"
    )
