"""What a simulation answers."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The most that was alive in one phase of a steady step."""

    name: str
    """forward, backward, optimizer step."""
    total: int
    parts: Mapping[str, int]
    """By the ledger's names, as far as code that runs tells them apart."""
    site: str
    """Where in the model: a block, counted from the nearer end, or outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Bytes of living tensors on the fullest GPU, of the second optimizer step."""

    moments: tuple[Moment, ...]
    resident: int
    """Between two steps."""
    resident_parts: Mapping[str, int]
    collectives: Mapping[str, int]
    """How often the rank took part in each kind, in one step as it was simulated."""
    layers: tuple[int, ...]
    """Depths that ran; more than one where the model's own depth was extrapolated, site by site."""
    seconds: float
    torch: str
    """Version."""
    not_simulated: tuple[str, ...]

    @property
    def peak_moment(self) -> Moment:
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def peak(self) -> int:
        return self.peak_moment.total
