"""Gradients on one GPU while the backward pass goes on, and after it.

Symbols as in states.py; c is the gradient's type, that of the model.
"""

from math import ceil

from dsgen.memory.setting import Setting


def resident(setting: Setting) -> int:
    """Gradients that are there before a backward pass begins.

    - Stages 0 and 1, when micro-batches accumulate: c T, since they are reduced at the boundary only
      (engine.py:allreduce_gradients).
    - Stage 2, when they accumulate: c T / N (zero/stage_1_and_2.py:all_grad_tensors).
    - Stage 3: c T / N always (zero/stage3.py:grad_partitions_flat_buffer).
    - Stages 2 and 3 with an offloaded optimizer: 0, they are kept on the host.
    """
    accumulates = setting.plan.accumulation > 1
    if setting.stage < 2:
        return setting.width * setting.trainable if accumulates else 0
    if setting.offloads_optimizer:
        return 0
    shard = setting.width * setting.trainable_shard
    return shard if setting.stage == 3 or accumulates else 0


def reduces_early(setting: Setting) -> bool:
    """Whether gradients are reduced while the backward pass goes on: at stages 2 and 3 always; at stage 1 with
    overlap_comm, in the last micro-batch (zero/stage_1_and_2.py:process_gradients)."""
    return setting.stage >= 2 or (setting.stage == 1 and setting.plan.overlaps)


def inside_backward(setting: Setting, computed: int, largest: int) -> int:
    """Gradients while a block runs backwards.

    computed: elements whose gradients exist if nothing is reduced yet (this block's included);
    largest: elements of the largest tensor in flight.

    - Stages 0 and 1 keep all of them: c computed, or c T when micro-batches accumulate. Stage 1 with
      overlap_comm and no accumulation is like stage 2.
    - Stage 2: c T / N for the partition, the one before it when micro-batches accumulate, and the
      tensor that is just computed (zero/stage_1_and_2.py:copy_grads_in_partition).
    - Stage 3: the partition (resident) and the tensor in flight (zero/stage3.py:partition_grads).
    """
    in_flight = setting.width * largest
    if setting.stage < 2:
        everything = setting.width * setting.trainable
        if setting.plan.accumulation > 1:
            return everything
        if not reduces_early(setting):
            return min(everything, setting.width * computed)
    if setting.stage == 3 or setting.offloads_optimizer:
        return resident(setting) + in_flight
    return resident(setting) + setting.width * setting.trainable_shard + in_flight


def reducing(setting: Setting) -> int:
    """Stage 1 at the end of the backward pass: c (T - R + T / N), R the elements moved to the bucket.

    All gradients are there; the first bucketful has left for the bucket (its tensors become views of
    it) and the partition's buffer has been made (zero/stage_1_and_2.py:reduce_gradients). With
    the optimizer offloaded there is no partition buffer.
    """
    moved = min(setting.plan.buckets.reduce, setting.trainable)
    partition = 0 if setting.offloads_optimizer else setting.trainable_shard
    return setting.width * (setting.trainable - moved + partition)


def stepping(setting: Setting) -> int:
    """Gradients when the optimizer step begins: c T at stage 0, c T / N sharded, 0 offloaded."""
    if setting.offloads_optimizer:
        return 0
    if setting.stage == 0:
        return setting.width * setting.trainable
    return setting.width * ceil(setting.trainable / setting.shards)
