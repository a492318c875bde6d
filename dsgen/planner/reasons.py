"""Why the chosen plan: one sentence per lever that was, or was not, pulled."""

from dsgen.memory.ledger import Part
from dsgen.plan import Plan, Wishes
from dsgen.planner.ladder import STAGES
from dsgen.planner.search import Found
from dsgen.planner.values import Candidate
from dsgen.target import Format

_STAGES = {
    0: "everything is replicated, no state is sharded",
    1: "optimizer states and fp32 master weights are sharded; it costs no more communication than plain DDP",
    2: "gradients are sharded too; the same bytes move as in plain DDP",
    3: "parameters are sharded too, gathered layer by layer; 1.5 times the bytes of plain DDP move",
}

_FSDP2_STAGES = {
    2: "all states are sharded; weights stay gathered from the forward to the backward pass",
    3: "all states are sharded; weights are gathered layer by layer, in the forward and again in the backward pass",
}


def reasons_of(
    found: Found, wishes: Wishes, global_batch: int | None, sums: str = "", format: Format = "deepspeed"
) -> tuple[str, ...]:
    """The sentences, in the order stage, checkpointing, offload, reduction, ``sums`` of gradients, batch."""
    plan = found.chosen.plan
    refused = [entry.candidate for entry in found.rejected if entry.candidate is not None]
    sentences = [
        _fsdp2_stage(plan, wishes, refused) if format == "fsdp2" else _stage(plan, wishes, refused),
        _checkpointing(plan, wishes, refused),
        _offload(plan, wishes, refused),
        _reduction(plan) if format == "fsdp2" else "",
        sums,
        _batch(plan, wishes, global_batch),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _stage(plan: Plan, wishes: Wishes, refused: list[Candidate]) -> str:
    head = f"ZeRO stage {plan.zero_stage}"
    if wishes.zero_stage is not None:
        return f"{head}: as wished; {_STAGES[plan.zero_stage]}."
    if plan.world_size == 1:
        if plan.zero_stage == 0:
            return f"{head}: on one GPU there is nothing to shard."
        if plan.offload_optimizer == plan.offload_parameters == "none":
            return f"{head}: nothing is sharded on one GPU, but ZeRO's step copies gradients less often."
        return f"{head}: nothing is sharded on one GPU, but DeepSpeed offloads only through ZeRO."
    lower = _alike(plan, refused)
    if plan.zero_stage == 0:
        return f"{head}: {_STAGES[0]}; it fits, so nothing needs sharding."
    if lower is None:
        return f"{head}: {_STAGES[plan.zero_stage]}."
    return f"{head}: {_STAGES[plan.zero_stage]}. Stage {lower.plan.zero_stage} overflows, most of it {_part(lower)}."


def _fsdp2_stage(plan: Plan, wishes: Wishes, refused: list[Candidate]) -> str:
    head = f"FSDP2, ZeRO stage {plan.zero_stage}"
    if wishes.zero_stage is not None:
        return f"{head}: as wished; {_FSDP2_STAGES[plan.zero_stage]}."
    lower = _alike(plan, refused)
    overflow = "" if lower is None else f" Stage {lower.plan.zero_stage} overflows, most of it {_part(lower)}."
    return f"{head}: {_FSDP2_STAGES[plan.zero_stage]}.{overflow}"


def _reduction(plan: Plan) -> str:
    if plan.accumulation == 1:
        return ""
    if plan.reduce_each_micro_batch:
        return "Gradients are reduced after every micro-batch: kept whole in fp32 until the last, they do not fit."
    return "Gradients are reduced after the last micro-batch only: kept whole in fp32 until then, they fit."


def _alike(plan: Plan, refused: list[Candidate]) -> Candidate | None:
    """The refused plan that differs in the stage alone and comes closest from below."""
    alike = [
        candidate
        for candidate in refused
        if candidate.plan.zero_stage < plan.zero_stage
        and candidate.plan.checkpointing == plan.checkpointing
        and candidate.plan.offload_optimizer == plan.offload_optimizer
        and candidate.plan.offload_parameters == plan.offload_parameters
    ]
    return max(alike, key=lambda candidate: candidate.plan.zero_stage, default=None)


def _part(candidate: Candidate) -> Part | str:
    return candidate.fit.overflows[0].largest_part.replace("_", " ") if candidate.fit.overflows else "nothing"


def _checkpointing(plan: Plan, wishes: Wishes, refused: list[Candidate]) -> str:
    kind = plan.checkpointing.kind
    if wishes.checkpointing is not None:
        return f"Checkpointing {plan.checkpointing}: as wished."
    if kind == "none":
        return "Checkpointing none: the activations fit, so nothing is recomputed."
    cost = "a few percent more arithmetic" if kind == "selective" else "a third more arithmetic"
    without = [c for c in refused if c.plan.checkpointing.kind == "none" and _same_offload(c.plan, plan)]
    even = "even " if without and without[-1].plan.zero_stage == max(STAGES) else ""
    why = f" Without it {even}{_name(without[-1].plan)} overflows." if without else ""
    return f"Checkpointing {kind}: {cost}, for fewer activations.{why}"


def _same_offload(one: Plan, other: Plan) -> bool:
    return (one.offload_optimizer, one.offload_parameters) == (other.offload_optimizer, other.offload_parameters)


def _name(plan: Plan) -> str:
    return "plain DDP" if plan.zero_stage == 0 and plan.world_size > 1 else f"ZeRO stage {plan.zero_stage}"


def _offload(plan: Plan, wishes: Wishes, refused: list[Candidate]) -> str:
    used = {"optimizer": plan.offload_optimizer, "parameters": plan.offload_parameters}
    off = ", ".join(f"{what} to {device}" for what, device in used.items() if device != "none")
    if not off:
        return "Offload none: everything fits on the GPUs."
    if wishes.offload_optimizer is not None or wishes.offload_parameters is not None:
        return f"Offload {off}: as wished."
    tried = any(c.plan.offload_optimizer == c.plan.offload_parameters == "none" for c in refused)
    why = "; nothing cheaper that was tried fits on the GPUs alone" if tried else ""
    return f"Offload {off}: the step waits for the CPU and PCIe{why}."


def _batch(plan: Plan, wishes: Wishes, global_batch: int | None) -> str:
    ranks = f"{plan.data_parallel} data-parallel rank{'s' if plan.data_parallel > 1 else ''}"
    product = f"{plan.micro_batch} x {plan.accumulation} x {ranks} = {plan.global_batch}"
    if isinstance(wishes.micro_batch, int):
        return f"Micro-batch {plan.micro_batch}: as wished; {product} sequences a step."
    if wishes.micro_batch == "max" and global_batch is None:
        return f"Micro-batch {plan.micro_batch}: the largest that fits; {product} sequences a step."
    if global_batch is None:
        return f"Micro-batch {plan.micro_batch}: the largest power of two that fits; {product} sequences a step."
    return f"Micro-batch {plan.micro_batch}: the largest that fits and divides the batch; {product}, as asked."
