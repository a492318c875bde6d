"""The optimizer of a DeepSpeed config as one of torch.optim: what the plain loop takes."""

from collections.abc import Mapping
from typing import Any

# What DeepSpeed takes away before it makes an optimizer, or what changes no figure.
_HOW = ("torch_adam", "adam_w_mode", "fused", "foreach", "bias_correction", "set_grad_none", "fp32_optimizer_states")
_TORCHS_OWN = ("SGD", "Adagrad", "RMSprop", "Adamax", "NAdam", "RAdam", "Adadelta")


def plain_optimizer(section: Mapping[str, Any]) -> dict[str, Any] | None:
    """``type`` and ``params`` for torch.optim; None where torch has no such optimizer.

    DeepSpeed's "Adam" is AdamW unless adam_w_mode says otherwise (deepspeed/runtime/engine.py,
    _configure_basic_optimizer); other names than its own are looked up in torch.optim.
    """
    name, params = str(section.get("type", "")), dict(section.get("params") or {})
    arguments = {key: value for key, value in params.items() if key not in _HOW}
    if "betas" in arguments:
        arguments["betas"] = tuple(arguments["betas"])
    lower = name.lower()
    if lower in ("adam", "adamw"):
        return _adam(lower == "adamw" or bool(params.get("adam_w_mode", True)), params, arguments)
    if lower == "adagrad":
        return {"type": "Adagrad", "params": arguments}
    return {"type": name, "params": arguments} if name in _TORCHS_OWN else None


def _adam(decoupled: bool, params: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any] | None:
    """DeepSpeed's own (deepspeed/ops/adam/fused_adam.py, cpu_adam.py) decay by 0 by default, torch's AdamW by 0.01."""
    if not params.get("torch_adam"):
        arguments.setdefault("weight_decay", 0.0)
    if params.get("bias_correction", True) is not True:
        return None
    return {"type": "AdamW" if decoupled else "Adam", "params": arguments}
