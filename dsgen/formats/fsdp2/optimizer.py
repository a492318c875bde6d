"""The optimizer of torch.optim and its arguments."""

from dataclasses import dataclass
from typing import Any

from dsgen.formats.fsdp2.order import Order

_CLASSES = {"adamw": "torch.optim.AdamW", "adam": "torch.optim.Adam", "sgd": "torch.optim.SGD"}


@dataclass(frozen=True, slots=True)
class Call:
    """A class and its keyword arguments."""

    name: str
    arguments: dict[str, Any]


def optimizer(order: Order) -> Call:
    """The spec's optimizer. One fused kernel a step keeps no temporary copy of the gradients, unless the step has to
    look at the GradScaler's flag, which is no DTensor as the parameters are."""
    wanted = order.case.training.optimizer
    kind = wanted.type.lower()
    arguments: dict[str, Any] = {"lr": wanted.lr}
    if kind == "sgd":
        arguments["momentum"] = wanted.momentum
    else:
        arguments |= {"betas": wanted.betas, "eps": wanted.eps}
    arguments["weight_decay"] = wanted.weight_decay
    if order.plan.precision != "fp16":
        arguments["fused"] = True
    return Call(_CLASSES[kind], arguments)
