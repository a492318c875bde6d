"""Optimizers: torch's instead of those that need a C++ or CUDA build, unless native ops are wanted."""

from typing import Any

from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.values import Machine

_ADAM = ("adam", "adamw")
# Their kernels are CUDA's (deepspeed/ops/op_builder/cpu has none of them), or they compress through NCCL or MPI.
_GPU_ONLY = ("lamb", "onebitadam", "onebitlamb", "zerooneadam")
_TORCH_ADAM_PARAMS = ("lr", "betas", "eps", "weight_decay")
_NATIVE_ONLY_PARAMS = ("bias_correction", "set_grad_none")
# What a training script without an "optimizer" section would pass; the Trainer makes torch's AdamW, too.
_SCRIPT_OPTIMIZER = {"type": "AdamW", "params": {"lr": 1e-3}}


def optimizer(edits: Edits, machine: Machine, native_ops: bool) -> dict[str, Any] | None:
    """Fits the section to this machine; where there is none, the optimizer that the worker makes instead."""
    if edits.get("optimizer") is None:
        return _from_script(edits)
    name = str(edits.get("optimizer.type")).lower()
    if machine.device == "cpu" and (name in _GPU_ONLY or (name == "lion" and not _offloaded(edits))):
        _replace(edits, name)
    elif name in _ADAM and not native_ops and edits.get("optimizer.params.torch_adam") is not True:
        native = "DeepSpeedCPUAdam" if _offloaded(edits) else "FusedAdam"
        why = f"{native} needs a C++ build; --native-ops keeps it"
        edits.set("optimizer.params.torch_adam", True, why)
        if edits.get("optimizer.params.weight_decay") is None:
            why = f"{native} decays weights by 0 where the file doesn't say, torch's AdamW by 0.01"
            edits.set("optimizer.params.weight_decay", 0.0, why)
        for param in _NATIVE_ONLY_PARAMS:
            edits.drop(f"optimizer.params.{param}", f"torch's Adam has no such parameter, {native} does")
    return None


def _replace(edits: Edits, name: str) -> None:
    why = f"DeepSpeed has no {name} for a CPU"
    edits.set("optimizer.type", "AdamW", why)
    params = edits.get("optimizer.params")
    for param in list(params if isinstance(params, dict) else ()):
        if param not in _TORCH_ADAM_PARAMS:
            edits.drop(f"optimizer.params.{param}", f"a parameter of {name}")
    edits.set("optimizer.params.torch_adam", True, why)


def _from_script(edits: Edits) -> dict[str, Any]:
    if _offloaded(edits):
        why = "the file has no optimizer, so smoke passes torch's AdamW, as a script might"
        edits.set("zero_force_ds_cpu_optimizer", False, why)
    return _SCRIPT_OPTIMIZER


def _offloaded(edits: Edits) -> bool:
    zero = "zero_optimization"
    return edits.get(f"{zero}.offload_optimizer.device") in ("cpu", "nvme") or edits.get(f"{zero}.cpu_offload") is True
