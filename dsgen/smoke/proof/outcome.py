"""A run and its trials become a run with a verdict on equality."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsgen.processes.events import Event
from dsgen.smoke.group import Ended
from dsgen.smoke.proof.judge import equality
from dsgen.smoke.proof.values import Equality, Trial
from dsgen.smoke.values import Failure, Outcome, Run


@dataclass(frozen=True)
class Finished:
    """What came of one job."""

    ended: Ended
    position: int
    """In its process group."""
    failure: tuple[Outcome, Failure | None] | None
    """None: it reached its end."""

    def event(self, kind: str) -> Event | None:
        """The first rank's event of a kind."""
        return next(iter(self.ended.ranks[0].of_case(self.position, kind)), None)


def with_equality(
    run: Run, trials: Sequence[tuple[Trial, Finished | None]], not_compared: str | None, processes: int
) -> Run:
    """The run, unequal if a check of a trial fails."""
    if not_compared is not None:
        return replace(run, equal=Equality(verdict=None, reason=not_compared))
    compared = []
    for trial, finished in trials:
        figures = finished.event("figures") if finished is not None and finished.failure is None else None
        if figures is not None:
            compared.append((trial, figures))
    equal = equality(compared, processes)
    if equal.verdict is False:
        failure = Failure(reason=f"not equal to a plain loop: {equal.reason}", phase="proof")
        return replace(run, outcome="unequal", error=failure, equal=equal)
    broken = next(((trial, came) for trial, came in trials if came is not None and came.failure), None)
    if broken is None:
        return replace(run, equal=equal)
    return _broken(run, equal, *broken)


def _broken(run: Run, equal: Equality, trial: Trial, finished: Finished) -> Run:
    """A trial that does not reach its end: generated code has to, a config may need what the trial took from it."""
    outcome, failure = finished.failure or ("failed", None)
    reason = f"{trial.name}: {failure.reason if failure else outcome}"
    equal = replace(equal, verdict=None, reason=reason)
    if trial.subject == "deepspeed" and outcome == "failed":
        return replace(run, equal=equal)
    why = replace(failure, reason=f"in the proof, {reason}") if failure else Failure(reason=reason)
    return replace(run, outcome=outcome, error=why, equal=equal)
