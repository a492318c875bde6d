"""Which of the plans that fit is taken: the fastest; of equally fast ones the safest, then the simplest."""

from dsgen.facts.constants import constant
from dsgen.planner.ranks import splits_more
from dsgen.planner.values import Candidate


def ranked(candidate: Candidate) -> float:
    """Tokens per second and GPU, less a margin for plans that split more than the data.

    Such a plan needs code and launchers that know it, so it has to be faster by more than the step time can be wrong
    about (constants.csv: another_dimension).
    """
    return candidate.speed / (1 + constant("another_dimension")) if splits_more(candidate.plan) else candidate.speed


def as_fast(speed: float) -> float:
    """From which speed on a plan counts as fast as one of ``speed`` (constants.csv: as_fast)."""
    return speed / (1 + constant("as_fast"))
