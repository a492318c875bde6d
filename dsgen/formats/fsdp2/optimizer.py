"""The optimizer of torch.optim and its arguments."""

from dataclasses import dataclass
from typing import Any

from dsgen.formats.fsdp2.order import CodeOrder

_CLASSES = {"adamw": "torch.optim.AdamW", "adam": "torch.optim.Adam", "sgd": "torch.optim.SGD"}


@dataclass(frozen=True, slots=True)
class Call:
    """A class and its keyword arguments."""

    name: str
    arguments: dict[str, Any]


def optimizer(order: CodeOrder) -> Call:
    """The spec's optimizer, fused where it can be: one kernel a step, and no temporaries.

    torch._fused_sgd_ has no rule for DTensors (torch 2.13, torch/distributed/tensor/_ops/), which shards are.
    """
    wanted = order.case.training.optimizer
    kind = wanted.type.lower()
    arguments: dict[str, Any] = {"lr": wanted.lr}
    if kind == "sgd":
        arguments["momentum"] = wanted.momentum
    else:
        arguments |= {"betas": wanted.betas, "eps": wanted.eps}
    arguments["weight_decay"] = wanted.weight_decay
    if kind != "sgd":
        arguments["fused"] = True
    return Call(_CLASSES[kind], arguments)
