"""zero_optimization: only the keys that act at the plan's stage (runtime/zero/config.py)."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.values import Reason
from dsgen.plan import ZeroPP

_STAGES = {
    0: "nothing is sharded: plain data parallelism",
    1: "optimizer states are sharded over the ranks",
    2: "optimizer states and gradients are sharded over the ranks",
    3: "optimizer states, gradients and parameters are sharded over the ranks",
}


def zero(order: Order) -> Iterator[Reason]:
    """The stage and the sizes of its buffers."""
    plan, why = order.case.plan, order.bucket_reasons
    stage, buckets = plan.zero_stage, plan.buckets

    def key(name: str, value: object, reason: str) -> Reason:
        return Reason(f"zero_optimization.{name}", value, reason)

    yield key("stage", stage, _STAGES[stage])
    if stage == 0:
        return
    if plan.has_bf16_optimizer:
        # It has no buckets, and reduces everything after the backward pass (runtime/bf16_optimizer.py).
        yield key("allgather_bucket_size", buckets.allgather, why["allgather"])
        return
    yield key("contiguous_gradients", True, "gradients are copied into one buffer, which does not fragment memory")
    yield key("overlap_comm", plan.overlaps, _overlap(plan.overlaps))
    if stage >= 2:
        yield key("reduce_scatter", True, "each rank receives only the gradients that it keeps")
    yield key("reduce_bucket_size", buckets.reduce, why["reduce"])
    if stage < 3:
        yield key("allgather_bucket_size", buckets.allgather, why["allgather"])
        return
    yield key("sub_group_size", buckets.sub_group_size, why["sub_group_size"])
    yield key("stage3_prefetch_bucket_size", buckets.prefetch, why["prefetch"])
    yield key("stage3_param_persistence_threshold", buckets.persistence_threshold, why["persistence_threshold"])
    yield key("stage3_max_live_parameters", buckets.max_live_parameters, why["max_live_parameters"])
    yield key("stage3_max_reuse_distance", buckets.max_reuse_distance, why["max_reuse_distance"])
    yield key(
        "stage3_gather_16bit_weights_on_model_save",
        True,
        "a saved model holds whole weights; without it save_16bit_model and the Trainer save none at stage 3",
    )
    yield from _zeropp(plan.zeropp)


def _zeropp(zeropp: ZeroPP) -> Iterator[Reason]:
    """ZeRO++, only what is switched on: all of it is off by default."""
    if zeropp.secondary_partition > 1:
        yield Reason(
            "zero_optimization.zero_hpz_partition_size",
            zeropp.secondary_partition,
            "hpZ: a second copy of the weights lies in each node, so that the backward pass gathers within it",
        )
    if zeropp.quantized_weights:
        why = "qwZ: weights are gathered in 8 bits, as wished; what is computed with is rounded"
        yield Reason("zero_optimization.zero_quantized_weights", True, why)
    if zeropp.quantized_gradients:
        why = "qgZ: gradients are reduced in 4 bits, as wished"
        yield Reason("zero_optimization.zero_quantized_gradients", True, why)


def _overlap(overlaps: bool) -> str:
    if overlaps:
        return "gradients are reduced while the backward pass runs"
    return "gradients are reduced after the backward pass: overlapping would hold a second bucket"
