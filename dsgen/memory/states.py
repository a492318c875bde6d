"""Parameters, master weights and optimizer states on one GPU, as DeepSpeed keeps them.

Symbols: T trainable and F frozen parameters of the rank, N shards, c bytes of a compute element,
o optimizer state tensors per parameter (Adam 2). Read in deepspeed 0.19.8, deepspeed/runtime/; checked
against real engines on two gloo processes (stages 0 to 3, bf16 and fp32, Adam): equal but for
alignment, which is at most 2 N elements at stages 1 and 2, N per tensor at stage 3.
"""

from math import ceil

from dsgen.memory import frozen
from dsgen.memory.setting import Setting


def parameters(setting: Setting) -> int:
    """Weights that live all the time: c (T + F), at stage 3 c (T + F) / N, offloaded 0; those that are held in few bits
    as quantizations.csv says (a row of the legality table keeps these below stage 3, where DeepSpeed moves nothing but
    what is trained).

    Stages 1 and 2 move all weights into one flat buffer whose slices the model keeps using
    (zero/stage_1_and_2.py:_update_model_bit16_weights), so there is no second copy. Stage 3
    shards frozen weights too (zero/partition_parameters.py:_partition_param).
    """
    if setting.offloads_parameters:
        return 0
    if setting.training.method.quantization is not None:
        return round(sum(frozen.blocks_stored(setting)) + frozen.outside_stored(setting))
    if setting.stage < 3:
        return setting.width * setting.parameters
    return setting.width * ceil(setting.parameters / setting.shards) + secondary(setting)


def secondary(setting: Setting) -> int:
    """ZeRO++'s second copy (hpZ): c (T + F) / H over the H ranks of a node, 1 byte each where weights are quantized
    (partition_parameters.py:_partition_param_sec); made in the first forward pass, and kept."""
    zeropp = setting.plan.zeropp
    if zeropp.secondary_partition == 1 or setting.shards == 1:
        return 0
    width = 1 if zeropp.quantized_weights else setting.width
    return width * ceil(setting.parameters / min(zeropp.secondary_partition, setting.shards))


def master_elements(setting: Setting) -> int:
    """fp32 copies of the trained weights, in elements: T / N, or none.

    - Stage 0: T where weights are 16 bit (fp16/fused_optimizer.py:fp32_groups_flat), none in fp32.
    - Stages 1 to 3: T / N, in fp32 training too: stages 1 and 2 clone the partition all the same
      (zero/stage_1_and_2.py:__init__, single_partition_of_fp32_groups). Stage 3 means to step the
      partition itself (zero/stage3.py:_create_fp32_partitions), but compares a torch.device with a string,
      which are never equal, and so clones too.
    """
    return setting.trainable_shard if setting.stage or setting.mixed else 0


def master_weights(setting: Setting) -> int:
    """4 bytes for each master element, 2 where these are kept in 16 bit; 0 on the GPU where the optimizer is
    offloaded."""
    return 0 if setting.offloads_optimizer else setting.master_width * master_elements(setting)


def optimizer_state_bytes(setting: Setting) -> int:
    """4 o T / N bytes, wherever they are: states have the type of what is stepped, fp32 but for 16-bit masters."""
    kept = setting.optimizer.kept(setting.training.optimizer.momentum)
    return setting.master_width * kept * setting.trainable_shard


def optimizer_states(setting: Setting) -> int:
    """On the GPU; 0 where the optimizer is offloaded."""
    return 0 if setting.offloads_optimizer else optimizer_state_bytes(setting)
