"""Keys that another key's value leaves nothing to do, beyond what the schema says of stages, switches and devices."""

from collections.abc import Mapping
from typing import Any

DYNAMIC = ("initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis", "min_loss_scale")
"""Of fp16: what only a loss scale that adapts reads (deepspeed/runtime/fp16/loss_scaler.py:CreateLossScaler)."""
_NVME = ("nvme_path", "buffer_count", "pipeline_read", "pipeline_write", "fast_init")
"""Of offload_optimizer: what only the swapper of stage 3 reads (deepspeed/runtime/zero/stage3.py)."""


def idle_beside(section: tuple[str, ...], key: str, given: Mapping[str, Any], stage: int | None) -> str | None:
    """Why ``key`` of ``section`` does nothing beside the values ``given`` there; None where it acts."""
    if section == ("fp16",) and key in DYNAMIC:
        fixed = given.get("loss_scale", 0)
        return f"loss_scale {fixed} is fixed" if isinstance(fixed, int | float) and fixed else None
    if section == ("zero_optimization", "offload_optimizer") and key in _NVME and stage in (1, 2):
        return f"nvme acts as cpu at stage {stage}" if given.get("device") == "nvme" else None
    if section == () and key == "allgather_size" and given.get("zero_optimization") is not True:
        return 'read beside "zero_optimization": true only'
    return None
