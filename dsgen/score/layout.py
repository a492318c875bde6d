"""How a run was laid out: sharding, parallel sizes, checkpointing, batch; and for which framework that is."""

import re
from math import ceil

from dsgen.plan import Buckets, Checkpointing, CheckpointingKind, Device, Plan, Precision
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.target import Format, Target

_STAGES: tuple[tuple[str, int, Format], ...] = (
    ("zero1", 1, "deepspeed"),
    ("zero2", 2, "deepspeed"),
    ("zero3", 3, "deepspeed"),
    ("fsdp1_full", 3, "fsdp1"),
    ("fsdp1(zero3-like)", 3, "fsdp1"),
    ("fsdp1_grad_op", 2, "fsdp1"),
    ("fsdp2", 3, "fsdp2"),
    ("hsdp", 3, "fsdp1"),
    ("distopt(zero1)", 1, "megatron"),
    ("ddp(no_shard)", 0, "fsdp1"),
    ("ddp", 0, "ddp"),
    ("none", 0, "ddp"),
)
"""What the sharding column begins with, the ZeRO stage that it is, and who does it."""

_BUCKETS = Buckets(
    reduce=500_000_000,
    allgather=500_000_000,
    prefetch=50_000_000,
    max_live_parameters=10**9,
    max_reuse_distance=10**9,
    persistence_threshold=100_000,
    sub_group_size=10**9,
)
"""DeepSpeed's defaults (deepspeed/runtime/zero/config.py): a run's own are stated nowhere in the table."""


def target_of(run: Run) -> tuple[int, Target]:
    """The ZeRO stage, and the framework."""
    sharding, framework = run.texts["sharding"].replace("zero-", "zero"), run.texts["framework"]
    for start, stage, form in _STAGES:
        if sharding.startswith(start):
            return stage, Target(format="megatron" if framework.startswith("megatron") else form)
    raise SkippedError(
        "the row does not say how states are sharded" if not sharding else f"{sharding!r} has no formula"
    )


def plan_of(run: Run) -> tuple[Plan, Target]:
    """Raises SkippedError for a layout without a formula."""
    stage, target = target_of(run)
    counts = {name: count if count is not None else 1 for name, count in run.counts.items()}
    world = counts["n_gpus"]
    if run.counts["micro_batch"] is None:
        raise SkippedError("the row does not state the micro-batch")
    ranks = counts["tp"] * counts["pp"] * counts["cp"] * counts["sp_ulysses"]
    if world % ranks:
        raise SkippedError(f"{ranks} ranks of tp, pp, cp and sp_ulysses don't divide {world} GPUs")
    optimizer, parameters, activations = _offload(run)
    group = re.search(r"\(group (\d+)\)", run.texts["sharding"])
    return Plan(
        world_size=world,
        gpus_per_node=ceil(world / counts["nodes"]),
        zero_stage=stage,
        precision=_precision(run),
        checkpointing=_checkpointing(run, target),
        micro_batch=counts["micro_batch"],
        accumulation=counts["grad_accum"],
        buckets=_BUCKETS,
        shard_group=int(group[1]) if group else None,
        # Composer leaves no_sync to DDP: under FSDP every micro-batch is reduced (composer/trainer/trainer.py).
        reduce_each_micro_batch="composer" in run.texts["framework"],
        tensor_parallel=counts["tp"],
        pipeline_parallel=counts["pp"],
        virtual_stages=counts["vpp"],
        context_parallel=counts["cp"],
        ulysses=counts["sp_ulysses"],
        offload_optimizer=optimizer,
        offload_parameters=parameters,
        offload_activations=activations,
        gradient_precision=_gradients(run, target),
    ), target


def _gradients(run: Run, target: Target) -> Precision | None:
    """Megatron reduces gradients in fp32 unless told otherwise; Megatron-Bridge's recipes for performance tell it
    (scripts/performance: ddp.grad_reduce_in_fp32 = False)."""
    if target.format != "megatron" or _precision(run) == "fp32":
        return None
    stated = run.texts["reduce_dtype"]
    narrow = stated in ("bf16", "fp16") or (not stated and run.texts["framework"].startswith("megatron-bridge"))
    return _precision(run) if narrow else None


def _precision(run: Run) -> Precision:
    name = run.texts["compute_dtype"]
    if name in ("fp32", "fp16"):
        return name  # type: ignore[return-value]
    # Eight-bit matrix products: weights, activations and gradients between them are bf16.
    if name == "bf16" or name.startswith(("fp8", "mxfp8")):
        return "bf16"
    raise SkippedError(f"compute type {name!r} has no formula")


def _checkpointing(run: Run, target: Target) -> Checkpointing:
    name = run.texts["act_ckpt"]
    every = re.fullmatch(r"selective_layer\(every (\d+)\)", name)
    if every:
        return Checkpointing("every", int(every[1]))
    kinds: dict[str, CheckpointingKind] = {
        "none": "none",
        "selective_op": "selective",
        "selective(core_attn)": "core_attention",
        "selective(mlp+core_attn)": "core_attention_mlp",
    }
    if name.startswith("full"):
        return Checkpointing("full")
    if name in kinds:
        # Parts of a block, as Megatron recomputes them: its ledger has them, no other.
        if kinds[name].startswith("core_attention") and target.format != "megatron":
            raise SkippedError(f"checkpointing {name!r} has a formula for Megatron only")
        return Checkpointing(kinds[name])
    raise SkippedError(
        "the row does not say what is checkpointed" if not name else f"checkpointing {name!r} is unknown"
    )


def _offload(run: Run) -> tuple[Device, Device, bool]:
    name = run.texts["offload"]
    if name in ("", "none"):
        return "none", "none", False
    parts = name.replace("cpu", "")
    return (
        "cpu" if "optim" in parts else "none",
        "cpu" if "params" in parts else "none",
        "act" in parts,
    )
