"""What is shown of a plan, whether it was decided or is only the closest one."""

from dataclasses import dataclass

from dsgen.planner.job import Inputs, Job
from dsgen.planner.refusal import NothingFitsError
from dsgen.planner.values import Candidate, Rejected
from dsgen.simulate.values import Simulation

# Said until the planner consults measured runs.
BASIS = "formulas alone: no measured run of this kind has been consulted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """One answer of the planner, ready to be shown."""

    inputs: Inputs
    shown: Candidate
    """The chosen plan, or the one that misses by least."""
    reasons: tuple[str, ...]
    alternatives: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]
    simulation: Simulation | None = None
    """Of the plan that is shown, where it was asked for."""


def view_of(job: Job) -> PlanView:
    """The view of a decision."""
    decision = job.decision
    return PlanView(
        inputs=job,
        shown=decision.chosen,
        reasons=decision.reasons,
        alternatives=decision.alternatives,
        rejected=decision.rejected,
        notes=decision.notes,
    )


def view_of_refusal(inputs: Inputs, refused: NothingFitsError) -> PlanView:
    """The view of the closest plan, where nothing fits."""
    return PlanView(
        inputs=inputs,
        shown=refused.closest,
        reasons=(),
        alternatives=(),
        rejected=refused.rejected,
        notes=inputs.notes,
    )
