"""What depends on where a config runs: NVMe, features of GPUs, group sizes, monitors."""

from pathlib import Path

from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.adapt.tiny import TINY_HIDDEN
from dsgen.smoke.values import Machine

_ZERO = "zero_optimization"
_MONITORS = ("tensorboard", "wandb", "comet", "csv_monitor")
_GPU_ONLY = ("zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients")
_GROUPS = ("zero_hpz_partition_size", "mics_shard_size")


def nvme(edits: Edits, machine: Machine, folder: Path) -> None:
    """Swaps to a folder of this run; to memory where NVMe offload can't be built."""
    for section in ("offload_optimizer", "offload_param"):
        key = f"{_ZERO}.{section}"
        if edits.get(f"{key}.device") != "nvme":
            continue
        if machine.libaio:
            edits.set(f"{key}.nvme_path", str(folder / "nvme"), "a temporary folder of this run")
        else:
            why = "no libaio here, so NVMe offload is not exercised (Debian, Ubuntu: apt install libaio-dev)"
            edits.set(f"{key}.device", "cpu", why)


def gpu_features(edits: Edits, machine: Machine) -> None:
    """Switches off what DeepSpeed has for GPUs alone."""
    if machine.device != "cpu":
        return
    for name in _GPU_ONLY:
        if edits.get(f"{_ZERO}.{name}") is True:
            edits.set(f"{_ZERO}.{name}", False, "DeepSpeed has its quantizer for GPUs only")
    if edits.get(f"{_ZERO}.offload_optimizer.super_offload") is True:
        edits.set(f"{_ZERO}.offload_optimizer.super_offload", False, "SuperOffload needs CUDA")


def groups(edits: Edits, processes: int) -> None:
    """Groups of ranks that are larger than the number of processes shrink to it."""
    for name in _GROUPS:
        size = edits.get(f"{_ZERO}.{name}")
        if isinstance(size, int) and size > processes:
            edits.set(f"{_ZERO}.{name}", processes, f"there are only {processes} processes")


def persistence(edits: Edits) -> None:
    """Stage 3 leaves parameters below a threshold whole: a tiny model would have nothing but those.

    Also by default: 1e5 elements (deepspeed/runtime/zero/config.py), more than its largest matrix has.
    """
    key = f"{_ZERO}.stage3_param_persistence_threshold"
    limit = 10 * TINY_HIDDEN  # ten times the hidden size, as the Trainer chooses it for real models
    value = edits.get(key)
    if edits.get(f"{_ZERO}.stage") != 3 or f"{_ZERO}.param_persistence_threshold" in edits:
        return
    if value in (None, "auto") or (isinstance(value, int | float) and value > limit):
        edits.set(key, limit, "the tiny model's matrices are smaller, and none would be partitioned")


def monitors(edits: Edits) -> None:
    """A trial run must not write into anybody's dashboards."""
    for name in _MONITORS:
        if edits.get(f"{name}.enabled") is True:
            edits.set(f"{name}.enabled", False, "a smoke run reports to nobody")
