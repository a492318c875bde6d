"""What the planner answers."""

from dataclasses import dataclass

from dsgen.memory.ledger import Fit, Ledger
from dsgen.plan import Plan
from dsgen.steptime.values import StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan with its ledger, whether it fits, and how long a step takes."""

    plan: Plan
    ledger: Ledger
    fit: Fit
    time: StepTime

    @property
    def speed(self) -> float:
        """Tokens per second and GPU."""
        return self.time.tokens_per_second_per_gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A simpler plan that was refused, and why, in words for someone who has to decide."""

    plan: Plan
    reason: str
    """Names the part that overflowed and by how much, or the rule that forbids it."""
    candidate: Candidate | None = None
    """Its ledger, where one was drawn up (an illegal plan has none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The chosen plan, the runners-up in the order in which they would be taken, and the refused, simplest first."""

    chosen: Candidate
    reasons: tuple[str, ...]
    """Why this one: one sentence per lever that was or was not pulled."""
    alternatives: tuple[Candidate, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    """What was assumed: inferred shapes, unknown host memory, default sequence length, ..."""
