"""Traffic of data parallelism: weights that are gathered and gradients that are reduced, and what of it nothing hides.

Symbols: P parameters, T trained parameters of one rank before sharding, c bytes of a weight, r of a gradient on its
way. Volumes: ZeRO (arXiv 1910.02054, section 7), ZeRO++ (arXiv 2306.10209).
"""

from dataclasses import dataclass

from dsgen.facts.constants import constant
from dsgen.facts.quantizations import quantizations
from dsgen.steptime.setting import Setting

_GATHERED = 3
"""Stage from which weights are gathered pass by pass, and gradients reduced into shards."""
_EIGHT_BITS = 0.5
"""qwZ: weights of two bytes go in one."""
_FOUR_BITS = 0.25
"""qgZ: gradients of two bytes go in half a one."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Seconds of the collectives themselves, hidden or not."""

    forward: float = 0.0
    """With each micro-batch's forward pass."""
    backward: float = 0.0
    """With each micro-batch's backward pass."""
    last_backward: float = 0.0
    """Once a step, with the last backward pass."""
    after: float = 0.0
    """Once a step, when no pass runs."""
    hides: bool = True
    """Collectives run beside the passes."""


def exposed(traffic: float, work: float) -> float:
    """What a collective adds to a pass of ``work`` seconds beside which it runs: what is longer than the pass, and
    contention of what is not, since collectives take multiprocessors and bandwidth from the kernels."""
    return max(0.0, traffic - work) + constant("contention") * min(traffic, work)


def exchange_of(setting: Setting) -> Exchange:
    """- Stage 3: weights are gathered for the forward and for the backward pass of every micro-batch, gradients reduced
      and scattered; FSDP without a sync does the latter for the last one only. FSDP's SHARD_GRAD_OP (stage 2) keeps
      the weights from one pass to the next.
    - Stages 1 and 2: gradients are reduced and scattered (stage 2 for every micro-batch), updated weights gathered when
      the optimizer is done. DeepSpeed's all-reduce whole buckets, of which each rank keeps its part: half as much again
      as the paper's volume (deepspeed/runtime/zero/stage_1_and_2.py: average_tensor, use_multi_rank_bucket_allreduce).
    - Stage 0: an all-reduce.
    - In a group smaller than all ranks (HSDP, ZeRO-1 groups), all-reduces of the shard among the groups come on top.
    """
    plan = setting.plan
    ranks = plan.world_size // (plan.tensor_parallel * plan.pipeline_parallel)
    if ranks == 1:
        return Exchange()
    if plan.zero_stage == 3 or (plan.zero_stage == 2 and setting.target.format in ("fsdp1", "fsdp2")):
        return _gathered(setting, ranks)
    hides = plan.overlap_comm is not False
    if setting.megatron or setting.target.format == "deepspeed":
        hides = bool(plan.overlap_comm)
    if setting.target.format == "deepspeed" and plan.zero_stage == 0:
        # Whole buckets after the last backward pass, whatever overlap_comm says, which is a key of ZeRO
        # (deepspeed/runtime/engine.py:buffered_allreduce_fallback).
        hides = False
    reduce = _reduced(setting, ranks)
    after = 0.0
    if plan.zero_stage:
        group = min(setting.shards, ranks)
        after = setting.links.gather(setting.trainable * setting.width, group, plan.tensor_parallel)
    if plan.zero_stage == 2 and plan.accumulation > 1:
        return Exchange(backward=reduce, after=after, hides=hides)
    return Exchange(last_backward=reduce, after=after, hides=hides)


def _gathered(setting: Setting, ranks: int) -> Exchange:
    plan = setting.plan
    group = min(setting.shards, ranks)
    size = setting.parameters * _weight_width(setting)
    stride = plan.tensor_parallel
    if plan.zeropp.quantized_weights:
        size *= _EIGHT_BITS
    forward = setting.links.gather(size, group, stride)
    again = 0.0
    if plan.zero_stage == 3:
        again = forward
        if plan.zeropp.secondary_partition > 1:
            again = setting.links.gather(setting.parameters * setting.width, plan.zeropp.secondary_partition, stride)
    reduce = _reduced(setting, ranks)
    each = plan.reduce_each_micro_batch or setting.target.format == "deepspeed" or plan.accumulation == 1
    if each:
        return Exchange(forward=forward, backward=again + reduce)
    return Exchange(forward=forward, backward=again, last_backward=reduce)


def _weight_width(setting: Setting) -> float:
    """Bytes in which a weight travels: quantised ones as they are stored."""
    quantized = setting.training.method.quantization
    if quantized:
        return quantizations()[quantized].width
    return setting.width


def _reduced(setting: Setting, ranks: int) -> float:
    """Seconds to reduce the gradients: reduce-scatter in the group, all-reduce among groups; all-reduce at stage 0, and
    at DeepSpeed's stages 1 and 2."""
    plan, links = setting.plan, setting.links
    size, stride = setting.trainable * setting.reduce_width, plan.tensor_parallel
    if plan.zeropp.quantized_gradients:
        # First among the ranks of a node, then, of what they have summed, among nodes (arXiv 2306.10209, section 3.3).
        span = links.nodes_of(ranks, stride)
        near = max(1, ranks // span)
        seconds = links.exchange(size * _FOUR_BITS, near, stride)
        return seconds + links.exchange(size * _FOUR_BITS / near, span, stride * near)
    if not plan.zero_stage or (plan.zero_stage < _GATHERED and setting.target.format == "deepspeed"):
        return links.reduce(size, ranks, stride)
    group = min(setting.shards, ranks)
    seconds = links.gather(size, group, stride)
    if group < ranks:
        seconds += links.reduce(size / group, ranks // group, stride * group)
    return seconds


def copies(setting: Setting) -> tuple[float, float]:
    """Seconds on the GPU to copy gathered weights out of and gradients into the flat buffers that travel, with each
    forward and each backward pass.

    FSDP2 copies what it gathers into each parameter, 2 c, and gradients into the buffer that is reduced, c + r
    (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py); FSDP1 computes on views of its flat parameter and
    gathers gradients into one, 2 c, cast to r (c + r).
    """
    plan, c = setting.plan, setting.width
    if plan.zero_stage < 2 or setting.target.format not in ("fsdp1", "fsdp2") or setting.shards == 1:
        return 0.0, 0.0
    rate = setting.machine.memory
    weights = 2 * _weight_width(setting) * setting.parameters / rate if setting.target.format == "fsdp2" else 0.0
    gradients = (c + setting.reduce_width) * setting.trainable / rate
    if setting.target.format == "fsdp1":
        gradients += 2 * c * setting.trainable / rate
    return weights, (weights if plan.zero_stage == 3 else 0.0) + gradients
