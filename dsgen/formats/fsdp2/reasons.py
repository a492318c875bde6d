"""Why each choice of the layout is what it is, for ``build --explain``."""

from collections.abc import Iterator

from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.values import Reason

_STAGES = {
    2: "weights stay gathered from the forward to the backward pass: one gather fewer, 2 bytes a parameter more",
    3: "weights are gathered layer by layer, in the forward and again in the backward pass",
}


def reasons(order: CodeOrder) -> Iterator[Reason]:
    """Under the names of what the code calls or sets."""
    plan = order.plan
    yield Reason("fully_shard", "blocks, then root", "one block is gathered at a time; the root holds the rest")
    yield Reason("reshard_after_forward", plan.zero_stage == 3, _STAGES[plan.zero_stage])
    if order.shard_group is not None:
        groups = plan.world_size // order.shard_group
        yield Reason(
            "device_mesh",
            [groups, order.shard_group],
            "weights are gathered inside a group only; between groups gradients are summed",
        )
    if plan.precision != "fp32":
        yield Reason("MixedPrecisionPolicy.param_dtype", plan.precision, "compute; shards and the step stay in fp32")
        yield Reason("MixedPrecisionPolicy.reduce_dtype", "fp32", "gradients of ranks and micro-batches add up in fp32")
    if plan.precision == "fp16":
        yield Reason("GradScaler", True, "small gradients would vanish in fp16 without a scale")
    if plan.offload_parameters == "cpu":
        yield Reason("CPUOffloadPolicy", True, "shards, gradients and optimizer states live in host memory")
    if plan.checkpointing.kind != "none":
        yield Reason("checkpoint_wrapper", str(plan.checkpointing), "activations are recomputed to save memory")
    yield Reason("MICRO_BATCH", plan.micro_batch, "sequences of one rank in one forward pass")
    yield Reason("ACCUMULATION", plan.accumulation, f"{plan.global_batch} sequences in one optimizer step")
    if plan.accumulation > 1:
        yield Reason("REDUCE_EACH_MICRO_BATCH", plan.reduce_each_micro_batch, _reduction(plan.reduce_each_micro_batch))


def _reduction(each: bool) -> str:
    if each:
        return "whole fp32 gradients would not fit beside the rest, so they are reduced after every micro-batch"
    return "gradients are reduced once a step; whole fp32 gradients fit in between"
