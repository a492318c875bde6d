"""What the optimizer step makes for its own time on one GPU.

Symbols as in states.py. Read in deepspeed 0.19.8; measured by others on 4 H100 (6.86 B parameters,
ZeRO-3, DeepSpeedExamples training/bf16_master_weight): 31.38 GiB peak over 25.74 GiB resident, of which 6 bytes of
the first sub-group are 5.6 GiB.
"""

from math import ceil

from dsgen.memory.setting import FP32, Setting

_FP64 = 8


def temporaries(setting: Setting) -> int:
    """Beside the gradients of gradients.py:stepping.

    - Stage 0, 16 bit: every gradient in fp32 and their flat copy, 8 T (fp16/fused_optimizer.py:step); with an
      optimizer that is not fused 4 T (fp16/unfused_optimizer.py:step). In fp32 nothing.
    - Stages 1 and 2: flat copy c T / N and, where c < 4, its fp32 form 4 T / N (zero/stage_1_and_2.py:step). Where
      gradients are added up in fp32 they are flat already, and neither is made (_get_preflattened_grad_partition).
    - Stage 3: the same for one sub-group (zero/stage3.py:_prepare_fp32_grad_for_sub_group); added up in fp32, one
      flat copy of 4 bytes. With masters in the compute type the flat copy alone, c.
    - Stages 1 to 3, before: the norm of one tensor at a time in fp64, 8 bytes of the largest piece that the rank has
      (zero/utils.py:get_norm_dtype). BF16_Optimizer takes it in fp32, and steps the gradients themselves.
    - What the optimizer itself adds (optimizers.csv), over what is stepped at once.
    - Offloaded: nothing, the step runs on the CPU.
    """
    if setting.offloads_optimizer:
        return 0
    stepped = setting.sub_group if setting.stage == 3 else setting.trainable_shard
    adds = FP32 * setting.optimizer.stepping(setting.training.optimizer.weight_decay) * stepped
    if setting.stage == 0:
        fused = setting.optimizer.name in ("adam", "adamw")
        prepared = (2 if fused else 1) * FP32 * setting.trainable if setting.mixed else 0
        return max(prepared, adds + (FP32 * setting.trainable if setting.mixed else 0))
    if setting.plan.has_bf16_optimizer:
        return adds
    norm = _FP64 * _largest_piece(setting)
    if setting.plan.sums_apart:
        return max(norm, adds + (FP32 * stepped if setting.stage == 3 else 0))
    if setting.master_width == setting.width:
        # The flat copy is stepped as it is.
        return max(norm, setting.width * stepped + adds)
    prepared = (setting.width + (FP32 if setting.mixed else 0)) * stepped
    return max(norm, prepared, FP32 * stepped + adds)


def _largest_piece(setting: Setting) -> int:
    """Elements of the largest trained tensor's part in a rank's shard; stages 1 and 2 cut all tensors as one."""
    largest = max(setting.shapes.largest_trainable_block_tensor, setting.shapes.outer.largest_trainable)
    return ceil(largest / setting.shards) if setting.stage == 3 else min(largest, setting.trainable_shard)


def backward_temporaries(setting: Setting, largest: int) -> int:
    """While gradients go to the host at stages 1 and 2: two fp32 tensors of the size of the gradient that is moved,
    one to check it for overflow, one to send it (zero/stage_1_and_2.py:update_offload_overflow_tracker_for_param_grad,
    async_inplace_copy_grad_to_fp32_buffer_from_gpu). Stage 3 moves shards, which are small."""
    if setting.stage in (1, 2) and setting.offloads_optimizer:
        return 2 * FP32 * largest
    return 0
