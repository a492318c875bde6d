"""What is seen of training code under trial."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Observed:
    """One training, as its own code did it."""

    losses: Sequence[float]
    """Mean over ranks and micro-batches, per step."""
    norms: Sequence[float | None]
    """Of the gradient before clipping, per step, as the code itself has it."""
    after: Mapping[str, Any]
    """Trained weights in full after the last step, by their plain names."""
    optimizer: Mapping[str, Any]
    """Its class in torch.optim and what it was made with."""
    collectives: list[dict[str, dict[str, int]]] = field(default_factory=list)
    layout: Mapping[str, Any] = field(default_factory=dict)
    """What the number of collectives depends on, as the code has it."""


def made(optimizer: Any) -> dict[str, Any]:
    """Class and arguments of a torch optimizer with one group; how it computes (fused, foreach) left out."""
    how = ("params", "initial_lr", "fused", "foreach", "capturable", "differentiable", "maximize", "swa_lr")
    arguments = {name: value for name, value in optimizer.param_groups[0].items() if name not in how}
    kind = type(optimizer).__name__
    if kind == "AdamW":
        arguments.pop("decoupled_weight_decay", None)
    return {"type": kind, "params": arguments}


def comparable(torch: Any, model: Any) -> Any:
    """A model that starts alike in every precision, and draws no random numbers.

    Weights are rounded to what bf16 can hold; two ways of training can't draw the same numbers for dropout.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        source: Any = sys.modules.get(type(module).__module__)
        if hasattr(source, "LORA_DROPOUT"):
            source.LORA_DROPOUT = 0.0  # how the generated decoder names it
    return model
