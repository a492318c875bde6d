"""Which of the plans that fit is taken: the fastest; of equally fast ones the safest, then the simplest."""

from dsgen.facts.constants import constant
from dsgen.plan import Plan
from dsgen.planner.ranks import splits_more
from dsgen.planner.values import Candidate

_LAST_RESORT = 1e6
"""No speed makes up for it, and among such plans the fastest still wins."""


def handicap(plan: Plan) -> float:
    """By how much a plan has to be faster that brings something in that others do without.

    Split ranks need code and launchers that know them, offload a CPU and a PCIe bus that nobody else uses: such a plan
    has to win by more than the step time can be wrong about (constants.csv: another_dimension).

    Parameters away and the optimizer not: DeepSpeed takes it, but its own estimator leaves it out
    (runtime/zero/stage3.py:estimate_zero3_model_states_mem_needs) and no measured run is known: only where nothing else
    fits.
    """
    if plan.offload_parameters != "none" and plan.offload_optimizer == "none":
        return _LAST_RESORT
    offloads = (plan.offload_optimizer, plan.offload_parameters) != ("none", "none")
    return constant("another_dimension") if offloads or splits_more(plan) else 0.0


def ranked(candidate: Candidate) -> float:
    """Tokens per second and GPU, less the handicap: what plans are compared by."""
    return candidate.speed / (1 + handicap(candidate.plan))


def as_fast(speed: float) -> float:
    """From which speed on a plan counts as fast as one of ``speed`` (constants.csv: as_fast)."""
    return speed / (1 + constant("as_fast"))
