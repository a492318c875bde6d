"""What lies on NVMe while training, and what one checkpoint takes on disk. Symbols as in states.py."""

from collections.abc import Mapping
from math import ceil

from dsgen.memory import states
from dsgen.memory.fsdp2.states import frozen_width
from dsgen.memory.setting import FP32, Setting


def nvme_per_node(setting: Setting) -> Mapping[str, int]:
    """Swap files of one node's ranks: master weights, states and fp32 gradients of an optimizer on NVMe;
    weights c (T + F) / N of parameters on NVMe (swap_tensor/optimizer_utils.py, partitioned_param_swapper.py)."""
    ranks, found = setting.ranks_per_node, {}
    if setting.plan.offload_optimizer == "nvme":
        found["master weights"] = FP32 * states.master_elements(setting) * ranks
        found["optimizer states"] = states.optimizer_state_bytes(setting) * ranks
        found["fp32 gradients"] = FP32 * setting.trainable_shard * ranks
    if setting.plan.offload_parameters == "nvme":
        found["parameters"] = setting.width * ceil(setting.parameters / setting.shards) * ranks
    return {name: size for name, size in found.items() if size}


def disk(setting: Setting) -> Mapping[str, int]:
    """One checkpoint of the whole job: weights c P once, master weights 4 T where they exist, states 4 o T.

    DeepSpeed writes each optimizer shard once (engine.py:_save_zero_checkpoint); at stage 3 the
    weights are those of one 16-bit export, since shards hold them as master weights. FSDP2 writes its fp32 shards.
    """
    shapes = setting.shapes
    if setting.target.format == "fsdp2":
        return _fsdp2_disk(setting)
    kept = setting.optimizer.kept(setting.training.optimizer.momentum)
    found = {
        "weights": setting.width * shapes.parameters,
        "master weights": FP32 * shapes.trainable if states.master_elements(setting) else 0,
        "optimizer states": FP32 * kept * shapes.trainable,
    }
    return {name: size for name, size in found.items() if size}


def _fsdp2_disk(setting: Setting) -> Mapping[str, int]:
    """torch.distributed.checkpoint: weights 4 T and those frozen as they are kept, states 4 o T."""
    kept = setting.optimizer.kept(setting.training.optimizer.momentum)
    shapes = setting.shapes
    weights = FP32 * shapes.trainable + frozen_width(setting) * (shapes.parameters - shapes.trainable)
    found = {"weights": weights, "optimizer states": FP32 * kept * shapes.trainable}
    return {name: size for name, size in found.items() if size}
