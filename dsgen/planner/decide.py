"""Decides: wishes and everything known about the job in, the simplest plan that fits and its reasons out."""

from dataclasses import replace

from dsgen.hardware import Hardware
from dsgen.legality.check import broken
from dsgen.legality.values import Case, Row
from dsgen.memory.account import account
from dsgen.memory.fit import fit
from dsgen.plan import Plan, Wishes, obeyed
from dsgen.planner.buckets import buckets_of, swap_of
from dsgen.planner.gradients import exact, sum_reason
from dsgen.planner.ladder import Rung, rungs
from dsgen.planner.micro_batch import Split, global_batch_of, splits
from dsgen.planner.precision import precision_of
from dsgen.planner.reasons import reasons_of
from dsgen.planner.search import climb
from dsgen.planner.values import Candidate, Decision
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target
from dsgen.units import format_bytes


def decide(
    wishes: Wishes,
    shapes: Shapes,
    hardware: Hardware,
    training: Training,
    sequence_length: int,
    target: Target,
) -> Decision:
    """The simplest legal plan that fits under the wishes.

    Raises RefusedError where a wish is illegal (IllegalPlanError says which rule), where the global batch can't be met,
    or where nothing fits (NothingFitsError has the closest plan).
    """
    world = hardware.world_size
    data_parallel = max(1, world // _model_ranks(wishes))
    precision, precision_notes = precision_of(wishes.precision, hardware, shapes)
    batch = global_batch_of(training, sequence_length, data_parallel)
    choices, batch_notes = splits(wishes, batch, data_parallel, sequence_length)

    def make(rung: Rung, split: Split) -> Plan:
        shards = wishes.shard_group or world
        plan = Plan(
            world_size=world,
            gpus_per_node=hardware.gpus_per_node,
            zero_stage=rung.zero_stage,
            precision=precision,
            checkpointing=rung.checkpointing,
            micro_batch=split.micro_batch,
            accumulation=split.accumulation,
            buckets=buckets_of(shapes, shards, rung.offload_optimizer),
            shard_group=wishes.shard_group,
            tensor_parallel=wishes.tensor_parallel or 1,
            pipeline_parallel=wishes.pipeline_parallel or 1,
            context_parallel=wishes.context_parallel or 1,
            ulysses=wishes.ulysses or 1,
            expert_parallel=wishes.expert_parallel or 1,
            offload_optimizer=rung.offload_optimizer,
            offload_parameters=rung.offload_parameters,
            offload_activations=wishes.offload_activations or False,
            # Costs one more bucket, and hides the reduction behind the backward pass.
            overlap_comm=rung.zero_stage > 0 and world > 1,
            swap=swap_of(shapes, shards),
        )
        # What the rung stands for is held there by the ladder; the rest of the wishes (buffers, overlap, ...) acts here.
        apart = replace(wishes, micro_batch=None, accumulation=None)
        return obeyed(plan, apart)

    def forbidding(plan: Plan) -> list[Row]:
        return broken(Case(plan=plan, shapes=shapes, training=training, hardware=hardware, target=target))

    def make_exact(rung: Rung, split: Split) -> Plan:
        plan = make(rung, split)
        return plan if wishes.gradient_precision is not None else exact(plan, target.format, forbidding)

    def weigh(plan: Plan) -> Candidate:
        ledger = account(plan, shapes, training, sequence_length, hardware, target)
        candidate = Candidate(plan=plan, ledger=ledger, fit=fit(ledger, hardware))
        if candidate.fit.fits or target.format != "fsdp2" or plan.accumulation == 1 or plan.reduce_each_micro_batch:
            return candidate
        if wishes.reduce_each_micro_batch is False:
            return candidate
        # One reduction a step is only ever faster, but keeps whole fp32 gradients: given up before anything else.
        return weigh(replace(plan, reduce_each_micro_batch=True))

    makers = (make_exact,) if target.format == "fsdp2" else (make_exact, make)
    found = climb(rungs(wishes, world, target.format), choices, makers, forbidding, weigh)
    return Decision(
        chosen=found.chosen,
        reasons=reasons_of(found, wishes, batch, sum_reason(found.chosen.plan, forbidding), target.format),
        alternatives=found.alternatives,
        rejected=found.rejected,
        notes=(*precision_notes, *batch_notes, *_unknowns(found.chosen, hardware)),
    )


def _model_ranks(wishes: Wishes) -> int:
    ranks = 1
    for size in (wishes.tensor_parallel, wishes.pipeline_parallel, wishes.context_parallel, wishes.ulysses):
        ranks *= size or 1
    return ranks


def _unknowns(chosen: Candidate, hardware: Hardware) -> list[str]:
    """What could not be checked because the spec does not say it."""
    ledger = chosen.ledger
    unchecked = "is not stated, so it was not checked"
    candidates = (
        (hardware.host_memory, ledger.host_per_node, f"Host memory {unchecked}: the plan needs {{}} a node."),
        (hardware.nvme, ledger.nvme_per_node, f"The size of the NVMe {unchecked}: the plan needs {{}} a node."),
        (hardware.disk, ledger.disk, f"Disk space {unchecked}: one checkpoint takes {{}}."),
    )
    return [
        note.format(format_bytes(sum(needed.values())))
        for known, needed, note in candidates
        if known is None and any(needed.values())
    ]
