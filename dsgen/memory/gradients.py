"""Gradients on one GPU while the backward pass goes on, and after it.

Symbols as in states.py; c bytes of a computed gradient, the model's type; g bytes of a summed one: c, or 4 where a
16-bit plan adds gradients up in fp32 (data_types.grad_accum_dtype). How DeepSpeed does so differs by stage:

- Stage 1 in bf16 has BF16_Optimizer: 4 T for all the run, to which each micro-batch's c T is added; these
  are set to zero for the next one, not freed (bf16_optimizer.py:fp32_groups_gradients_flat, clear_lp_grads).
- Stage 1 in fp16, or with the optimizer offloaded: every gradient moves into a tensor of 4 bytes, 4 T
  (zero/stage_1_and_2.py:_fill_param_grad_accum_attribute), which are reduced into a partition of 4 T / N.
- Stage 2: that partition only, into which each reduction is added, on the GPU even where the optimizer is offloaded
  (zero/stage_1_and_2.py:_build_compact_grad_partition_buffer, since 0.19.8).
- Stage 3: as without, of 4 bytes (zero/stage3.py:grad_partitions_flat_buffer).
"""

from math import ceil

from dsgen.memory.setting import FP32, Setting


def resident(setting: Setting) -> int:
    """Gradients that are there before the backward pass of the last micro-batch begins.

    - BF16_Optimizer: 4 T, and c T when micro-batches accumulate.
    - Stages 0 and 1, when micro-batches accumulate: g T, since they are reduced at the boundary only
      (engine.py:allreduce_gradients).
    - Stage 2, when they accumulate: g T / N (zero/stage_1_and_2.py:all_grad_tensors).
    - Stage 3: g T / N always (zero/stage3.py:grad_partitions_flat_buffer).
    - Stages 2 and 3 with an offloaded optimizer: 0, they are kept on the host; but see stage 2 above.
    """
    accumulates = setting.plan.accumulation > 1
    if setting.plan.has_bf16_optimizer:
        return (FP32 + (setting.width if accumulates else 0)) * setting.trainable
    if setting.stage < 2:
        return setting.sum_width * setting.trainable if accumulates else 0
    if setting.offloads_optimizer and not _partition_on_gpu(setting):
        return 0
    shard = setting.sum_width * setting.trainable_shard
    return shard if setting.stage == 3 or accumulates else 0


def _partition_on_gpu(setting: Setting) -> bool:
    """Whether stages 1 and 2 reduce into a partition of fp32."""
    return setting.stage in (1, 2) and setting.plan.sums_apart and not setting.plan.has_bf16_optimizer


def reduces_early(setting: Setting) -> bool:
    """Whether gradients are reduced while the backward pass goes on: at stages 2 and 3 always; at stage 1 with
    overlap_comm, in the last micro-batch (zero/stage_1_and_2.py:process_gradients), but not by BF16_Optimizer."""
    if setting.plan.has_bf16_optimizer:
        return False
    return setting.stage >= 2 or (setting.stage == 1 and setting.plan.overlaps)


def inside_backward(setting: Setting, computed: int, largest: int) -> int:
    """Gradients while a block runs backwards.

    computed: elements whose gradients exist if nothing is reduced yet (this block's included);
    largest: elements of the largest tensor in flight.

    - BF16_Optimizer: 4 T, and c computed, or c T when micro-batches accumulate.
    - Stages 0 and 1 keep all of them: g computed, or g T when micro-batches accumulate. Stage 1 with
      overlap_comm and no accumulation is like stage 2. In fp32 there is also the tensor that is being moved; with
      overlap_comm and accumulation the partition too, and the first bucketful has left (reducing).
    - Stage 2: c T / N for the partition, the one before it when micro-batches accumulate, and the
      tensor that is just computed (zero/stage_1_and_2.py:copy_grads_in_partition). In fp32 one partition, 4 T / N, and
      the reduced tensor that is added to it, 4 bytes each (_add_to_grad_partition_buffer).
    - Stage 3: the partition (resident) and the tensor in flight (zero/stage3.py:partition_grads).
    """
    if setting.plan.has_bf16_optimizer:
        return max(resident(setting), FP32 * setting.trainable + setting.width * min(setting.trainable, computed))
    in_flight = setting.width * largest
    partition = setting.sum_width * setting.trainable_shard
    apart = setting.plan.sums_apart
    if setting.stage < 2:
        everything = setting.sum_width * setting.trainable
        moving = in_flight if apart else 0
        if setting.plan.accumulation > 1:
            return (max(everything, reducing(setting)) if apart and reduces_early(setting) else everything) + moving
        if not reduces_early(setting):
            return min(everything, setting.sum_width * computed) + moving
    if setting.stage == 3:
        return resident(setting) + in_flight
    if apart:
        return partition + setting.sum_width * largest
    if setting.offloads_optimizer:
        return in_flight + resident(setting)
    return resident(setting) + partition + in_flight


def reducing(setting: Setting) -> int:
    """Stage 1 at the end of the backward pass: g (T - R + T / N), R the elements moved to the bucket.

    All gradients are there; the first bucketful has left for the bucket (its tensors become views of
    it) and the partition's buffer has been made (zero/stage_1_and_2.py:reduce_gradients). With
    the optimizer offloaded there is no partition buffer, unless it is one of fp32. BF16_Optimizer: 4 T + c T.
    """
    if setting.plan.has_bf16_optimizer:
        return (FP32 + setting.width) * setting.trainable
    moved = min(setting.plan.buckets.reduce, setting.trainable)
    on_host = setting.offloads_optimizer and not _partition_on_gpu(setting)
    partition = 0 if on_host else setting.trainable_shard
    return setting.sum_width * (setting.trainable - moved + partition)


def stepping(setting: Setting) -> int:
    """Gradients when the optimizer step begins: c T at stage 0, g T / N sharded, 0 offloaded (4 T / N at stages 1 and 2
    in fp32), 4 T + c T with BF16_Optimizer."""
    if setting.plan.has_bf16_optimizer:
        return (FP32 + setting.width) * setting.trainable
    if setting.offloads_optimizer and not _partition_on_gpu(setting):
        return 0
    if setting.stage == 0:
        return setting.width * setting.trainable
    return setting.sum_width * ceil(setting.trainable / setting.shards)
