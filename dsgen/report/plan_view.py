"""What is shown of a plan, whether it was decided or is only the closest one."""

from dataclasses import dataclass, replace

from dsgen.memory.basis import basis_of
from dsgen.planner.job import Inputs, Job
from dsgen.planner.levers import breakdown
from dsgen.planner.refusal import NothingFitsError
from dsgen.planner.values import Candidate, Rejected
from dsgen.report.calibration_used import calibration_words
from dsgen.simulate.values import Simulation


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

    @property
    def basis(self) -> str:
        """What the figures rest on: the nearest measured runs, or that there are none of this kind."""
        inputs = self.inputs
        training = replace(inputs.training, sequence_length=inputs.sequence_length)
        said = basis_of(self.shown.plan, inputs.shapes, training, inputs.hardware, inputs.target)
        words = calibration_words()
        return f"{said}; calibrated with {words}" if words else said


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
        reasons=breakdown(refused.closest, refused.format),
        alternatives=(),
        rejected=refused.rejected,
        notes=inputs.notes,
    )
