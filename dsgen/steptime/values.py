"""The form of a step time: seconds of one optimizer step by named part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

TimePart = Literal["compute", "recomputation", "communication", "offload", "optimizer", "bubble", "launch"]
"""compute: forward and backward pass; recomputation: what checkpointing runs a second time; communication and offload:
what of them nothing hides; optimizer: the step itself, wherever it runs; bubble: a pipeline stage that waits; launch:
the GPU waits for the host that launches its kernels."""
TIME_PARTS: tuple[TimePart, ...] = get_args(TimePart)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimizer step on the slowest rank."""

    parts: Mapping[TimePart, float]
    """Every part is there, 0 where it takes no time; they sum to ``seconds``."""
    tokens_per_second_per_gpu: float
    """Tokens of the global batch, over seconds, over all GPUs."""
    mfu: float | None
    """Model FLOPs utilisation: the model's FLOPs over what the GPU could do in that time; None where the GPU's peak is
    unknown."""
    low: float
    high: float
    """Band of the seconds."""
    notes: tuple[str, ...] = ()
    """What the figures assume."""

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())
