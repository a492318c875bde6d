"""The optimizer of a DeepSpeed config as one of torch.optim: what the plain loop takes."""

from collections.abc import Mapping
from typing import Any

# What DeepSpeed takes away before it makes torch's optimizer, or what changes no figure.
_HOW = ("torch_adam", "adam_w_mode", "fused", "foreach")
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
    if lower == "adamw":
        return {"type": "AdamW", "params": arguments}
    if lower == "adam":
        return {"type": "AdamW" if params.get("adam_w_mode", True) else "Adam", "params": arguments}
    if lower == "adagrad":
        return {"type": "Adagrad", "params": arguments}
    return {"type": name, "params": arguments} if name in _TORCHS_OWN else None
