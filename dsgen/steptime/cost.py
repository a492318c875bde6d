"""Seconds on the GPU and kernels to launch, of a forward and a backward pass."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """One part of a pass over one micro-batch; parts add up, since kernels of one stream run one after the other."""

    forward: float = 0.0
    backward: float = 0.0
    """Seconds that the GPU is busy."""
    forward_launches: float = 0.0
    backward_launches: float = 0.0
    """Kernels that the host starts."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.forward + other.forward,
            self.backward + other.backward,
            self.forward_launches + other.forward_launches,
            self.backward_launches + other.backward_launches,
        )

    def times(self, count: float) -> "Cost":
        """That many of it."""
        return Cost(
            self.forward * count,
            self.backward * count,
            self.forward_launches * count,
            self.backward_launches * count,
        )
