"""Communication buffers on one GPU: reduce buckets and the copies that collectives make.

Symbols: R reduce_bucket_size, T trainable parameters, c bytes of a computed gradient, g of a summed one (gradients.py).
"""

from dataclasses import dataclass

from dsgen.facts.constants import constant
from dsgen.memory.setting import Setting


@dataclass(frozen=True, slots=True)
class Buffers:
    """Bytes always there, and those there from the first gradient to the last reduction."""

    always: int
    backward: int
    """In addition, while the backward pass goes on."""
    reducing: int
    """In addition to both, while gradients are reduced."""
    step: int = 0
    """What of ``backward`` is still there when the optimizer step begins."""


def buffers(setting: Setting) -> Buffers:
    """Reduce buckets by stage.

    - Stage 0: gradients are flattened for one all-reduce of up to 5e8 elements, with more than
      one rank only (engine.py:buffered_allreduce_fallback).
    - Stages 1 and 2: c R from the first gradient on, whatever the model's size, twice with overlap_comm
      (zero/stage_1_and_2.py:setup_buckets); the reduction flattens the bucket's slices once more,
      c min(R, T) (allreduce_bucket). The all-gather of updated weights is in place, so
      allgather_bucket_size costs nothing (runtime/utils.py:all_gather_dp_groups). With the
      optimizer offloaded, one more buffer of the largest tensor (temp_grad_buffer_for_gpu_offload).
    - Stage 1 adding up in fp32: buckets and copy are of g, and the copy is sent in the compute type, c min(R, T); the
      gradients stay views of the buckets until the step has begun (_clear_param_grad_only, free_grad_in_param_list).
    - BF16_Optimizer has no buckets; its one flat gradient is sent in the compute type, c T
      (engine.py:allreduce_bucket).
    - Stage 3: c R always, once (zero/stage3.py:_setup_for_real_optimizer); the reduce-scatter
      interleaves the bucket in a copy, c min(R, T) (comm/coalesced_collectives.py).
    """
    if setting.plan.has_bf16_optimizer:
        return Buffers(0, 0, setting.width * setting.trainable)
    bucket = setting.width * setting.plan.buckets.reduce
    copy = setting.width * min(setting.plan.buckets.reduce, setting.trainable)
    if setting.stage == 0:
        flattened = setting.width * min(int(constant("ddp_bucket")), setting.trainable)
        return Buffers(0, 0, flattened if setting.plan.data_parallel > 1 else 0)
    if setting.stage == 3:
        return Buffers(bucket, 0, copy)
    offload = setting.width * setting.shapes.largest_tensor if setting.offloads_optimizer else 0
    buckets = 2 if setting.plan.overlaps else 1
    if setting.stage == 1 and setting.plan.sums_apart:
        wide = setting.sum_width * buckets * setting.plan.buckets.reduce
        copies = (setting.sum_width + setting.width) * min(setting.plan.buckets.reduce, setting.trainable)
        return Buffers(offload, wide, copies, step=wide)
    return Buffers(offload, buckets * bucket, copy)
