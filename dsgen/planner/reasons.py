"""Why the chosen plan: one sentence per lever that was, or was not, pulled, and what the runner-up costs."""

from collections.abc import Callable, Sequence

from dsgen.memory.ledger import Overflow, Part
from dsgen.plan import Plan, Wishes
from dsgen.planner.choose import Choice
from dsgen.planner.levers import lever_of
from dsgen.planner.ranks import splits_more
from dsgen.planner.refusal import batch_words, plan_name, slower_words
from dsgen.planner.values import Candidate, Rejected
from dsgen.target import Format
from dsgen.units import format_bytes

_STAGES = {
    0: "everything is replicated, no state is sharded",
    1: "optimizer states and fp32 master weights are sharded; updated weights are gathered once a step",
    2: "gradients are sharded too; they are reduced with every micro-batch",
    3: "parameters are sharded too, gathered layer by layer; every micro-batch moves 1.5 times the bytes of plain DDP",
}
"""In DeepSpeed, whose stages 1 and 2 move more than the paper's (dsgen/steptime/sharding.py)."""

_FSDP2_STAGES = {
    2: "all states are sharded; weights stay gathered from the forward to the backward pass",
    3: "all states are sharded; weights are gathered layer by layer, in the forward and again in the backward pass",
}


def reasons_of(
    choice: Choice,
    rejected: Sequence[Rejected],
    wishes: Wishes,
    global_batch: int | None,
    sums: str = "",
    format: Format = "deepspeed",
) -> tuple[str, ...]:
    """The sentences: stage, ranks, checkpointing, offload, reduction, ``sums`` of gradients, batch, runner-up."""
    plan = choice.chosen.plan
    refused = [entry.candidate for entry in rejected if entry.candidate is not None]
    tried = [candidate for candidate in refused if not candidate.fit.fits]
    stage: Callable[[Choice, Wishes], str] = _fsdp2_stage if format == "fsdp2" else _stage
    sentences = [
        stage(choice, wishes),
        *_ranks(choice.chosen, wishes, tried),
        _checkpointing(choice, wishes, format),
        _offload(plan, wishes, tried),
        _reduction(plan) if format == "fsdp2" else "",
        sums,
        _batch(choice, wishes, global_batch),
        _runner_up(choice, format),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _stage(choice: Choice, wishes: Wishes) -> str:
    plan = choice.chosen.plan
    head = f"ZeRO stage {plan.zero_stage}"
    if wishes.zero_stage is not None:
        return f"{head}: as wished; {_STAGES[plan.zero_stage]}."
    if plan.world_size == 1:
        if plan.zero_stage == 0:
            return f"{head}: on one GPU there is nothing to shard."
        if plan.offload_optimizer == plan.offload_parameters == "none":
            return f"{head}: nothing is sharded on one GPU, but ZeRO's step copies gradients less often."
        return f"{head}: nothing is sharded on one GPU, but DeepSpeed offloads only through ZeRO."
    if plan.zero_stage == 0:
        return f"{head}: {_STAGES[0]}; it fits, so nothing needs sharding."
    return f"{head}: {_STAGES[plan.zero_stage]}.{_lower(choice, 'deepspeed')}"


def _fsdp2_stage(choice: Choice, wishes: Wishes) -> str:
    stage = choice.chosen.plan.zero_stage
    head = f"FSDP2, ZeRO stage {stage}"
    if wishes.zero_stage is not None:
        return f"{head}: as wished; {_FSDP2_STAGES[stage]}."
    return f"{head}: {_FSDP2_STAGES[stage]}.{_lower(choice, 'fsdp2')}"


def _lower(choice: Choice, format: Format) -> str:
    """Why not the stage below, with all else equal."""
    lower = choice.lower
    if lower is None:
        return ""
    stage = lower.plan.zero_stage
    if lower.fit.fits:
        tight = " with little to spare" if lower.fit.tight and not choice.chosen.fit.tight else ""
        return f" Stage {stage} fits{tight}, {batch_words(lower.plan)}, and is {slower_words(lower, choice.chosen)}."
    (overflow, *_) = lower.fit.overflows
    return (
        f" Stage {stage} overflows by {format_bytes(overflow.by)}, most of it {_part(overflow)} "
        f"({format_bytes(overflow.largest_part_bytes)}), which answers to {lever_of(overflow, lower.plan, format)}."
    )


def _part(overflow: Overflow) -> Part | str:
    return overflow.largest_part.replace("_", " ")


def _ranks(chosen: Candidate, wishes: Wishes, refused: list[Candidate]) -> list[str]:
    """How ranks are split, where they are."""
    plan, found = chosen.plan, []
    why = _without_split(refused)
    if plan.global_batch < plan.world_size:
        why = f" A batch of {plan.global_batch} has fewer sequences than there are GPUs, so they share them."
    if plan.tensor_parallel > 1:
        found.append(
            f"Tensor parallel {plan.tensor_parallel}: "
            + _wished(wishes.tensor_parallel, f"each matrix lies on {plan.tensor_parallel} GPUs of a node.{why}")
        )
    if plan.ulysses > 1:
        found.append(
            f"Ulysses {plan.ulysses}: "
            + _wished(wishes.ulysses, f"each sequence is split over {plan.ulysses} GPUs of a node.{why}")
        )
    if plan.shard_group is not None:
        found.append(
            f"Shard group {plan.shard_group}: "
            + _wished(
                wishes.shard_group, "weights are gathered within a node only, and gradients reduced between nodes."
            )
        )
    if plan.zeropp.secondary_partition > 1:
        size = plan.zeropp.secondary_partition
        found.append(
            f"hpZ {size}: "
            + _wished(wishes.zeropp, "a second copy of the weights in each node spares the backward pass the network.")
        )
    return found


def _without_split(refused: list[Candidate]) -> str:
    """What comes closest among the plans that split nothing but the data."""
    plain = [each for each in refused if not splits_more(each.plan) and each.fit.overflows]
    if not plain:
        return ""
    closest = min(plain, key=lambda each: each.fit.overflows[0].needed / max(each.fit.overflows[0].available, 1))
    overflow = closest.fit.overflows[0]
    by = f"{format_bytes(overflow.by)}, most of it {_part(overflow)}"
    return f" Without it {plan_name(closest.plan)} is over by {by}."


def _wished(wish: object, otherwise: str) -> str:
    return otherwise if wish is None else "as wished."


def _checkpointing(choice: Choice, wishes: Wishes, format: Format) -> str:
    chosen = choice.chosen
    plan = chosen.plan
    kind = plan.checkpointing.kind
    if wishes.checkpointing is not None:
        return f"Checkpointing {plan.checkpointing}: as wished."
    if kind == "none":
        return "Checkpointing none: the activations fit, so nothing is recomputed."
    share = chosen.time.parts["recomputation"] / chosen.time.seconds
    head = f"Checkpointing {kind}: {share * 100:.0f} % of the step is recomputation, for fewer activations."
    plain = choice.plain
    if plain is None:
        return head
    if plain.fit.fits:
        return f"{head} Without it, {plan_name(plain.plan, format)} fits, and is {slower_words(plain, chosen)}."
    (overflow, *_) = plain.fit.overflows
    by = f"{format_bytes(overflow.by)}, most of it {_part(overflow)}"
    return f"{head} Without it, {plan_name(plain.plan, format)} overflows by {by}."


def _same_offload(one: Plan, other: Plan) -> bool:
    return (one.offload_optimizer, one.offload_parameters) == (other.offload_optimizer, other.offload_parameters)


def _offload(plan: Plan, wishes: Wishes, refused: list[Candidate]) -> str:
    used = {"optimizer": plan.offload_optimizer, "parameters": plan.offload_parameters}
    off = ", ".join(f"{what} to {device}" for what, device in used.items() if device != "none")
    if not off:
        return "Offload none: everything fits on the GPUs."
    if wishes.offload_optimizer is not None or wishes.offload_parameters is not None:
        return f"Offload {off}: as wished."
    on_gpu = [c for c in refused if c.plan.offload_optimizer == c.plan.offload_parameters == "none"]
    why = "; nothing cheaper that was tried fits on the GPUs alone" if on_gpu else ""
    return f"Offload {off}: the step waits for the CPU and PCIe{why}."


def _reduction(plan: Plan) -> str:
    if plan.accumulation == 1:
        return ""
    if plan.reduce_each_micro_batch:
        return "Gradients are reduced after every micro-batch: kept whole in fp32 until the last, they do not fit."
    return "Gradients are reduced after the last micro-batch only: kept whole in fp32 until then, they fit."


def _batch(choice: Choice, wishes: Wishes, global_batch: int | None) -> str:
    plan, largest = choice.chosen.plan, choice.largest.plan.micro_batch
    ranks = f"{plan.data_parallel} data-parallel rank{'s' if plan.data_parallel > 1 else ''}"
    product = f"{plan.micro_batch} x {plan.accumulation} x {ranks} = {plan.global_batch}"
    if isinstance(wishes.micro_batch, int):
        return f"Micro-batch {plan.micro_batch}: as wished; {product} sequences a step."
    if plan.micro_batch < largest:
        more = f"{largest} fits too, with little to spare, and is hardly faster"
        return f"Micro-batch {plan.micro_batch}: {product}; {more}."
    if wishes.micro_batch == "max" and global_batch is None:
        return f"Micro-batch {plan.micro_batch}: the largest that fits; {product} sequences a step."
    if global_batch is None:
        return f"Micro-batch {plan.micro_batch}: the largest power of two that fits; {product} sequences a step."
    return f"Micro-batch {plan.micro_batch}: the largest that fits and divides the batch; {product}, as asked."


def _runner_up(choice: Choice, format: Format) -> str:
    if not choice.alternatives:
        return ""
    second = choice.alternatives[0]
    said = slower_words(second, choice.chosen)
    faster = second.speed > choice.chosen.speed
    why = ": too little to give up " + (
        "room to spare" if second.fit.tight > choice.chosen.fit.tight else "the simpler plan"
    )
    return f"The runner-up, {plan_name(second.plan, format)}, is {said}{why if faster else ''}."
