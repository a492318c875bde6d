"""Optimizers: what each keeps per trained parameter. To add an optimizer, add a row to optimizers.csv."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import number, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerFacts:
    """Tensors of the shape and type of the (master) parameter."""

    name: str
    states: int
    """Always kept."""
    momentum_states: int
    """Kept in addition where momentum is not zero."""
    decay_copies: int
    """Made for the time of the step where weight decay is not zero."""
    state_bytes: float | None
    """Bytes of one element of a state; None: those of the stepped weight."""
    source: str

    def kept(self, momentum: float) -> int:
        """State tensors per parameter."""
        return self.states + (self.momentum_states if momentum else 0)

    def state_size(self, width: int, momentum: float) -> float:
        """Bytes of all states of one parameter that is stepped in ``width`` bytes."""
        return self.kept(momentum) * (width if self.state_bytes is None else self.state_bytes)

    def stepping(self, weight_decay: float) -> int:
        """Temporary tensors per parameter while it steps."""
        return self.decay_copies if weight_decay else 0


@cache
def optimizers() -> dict[str, OptimizerFacts]:
    """Every optimizer by its name in lower case."""
    return {
        row["name"]: OptimizerFacts(
            name=row["name"],
            states=int(row["states"]),
            momentum_states=int(row["momentum_states"]),
            decay_copies=int(row["decay_copies"]),
            state_bytes=number(row["state_bytes"]),
            source=row["source"],
        )
        for row in rows("optimizers")
    }


def find_optimizer(name: str) -> OptimizerFacts | None:
    """The optimizer of that name, upper and lower case alike."""
    return optimizers().get(name.lower())
