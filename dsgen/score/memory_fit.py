"""Measured memory as rows to which the ledger's named constants are fitted (dsgen/score/fit.py)."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from dsgen.errors import ProblemsError
from dsgen.score.predict import Prepared, Statistic, figures, prepare, statistics
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One figure of one run."""

    source: str
    statistic: Statistic
    prepared: Prepared
    measured: int
    """Bytes."""

    def residual(self) -> float:
        """log predicted - log measured, with the constants of now."""
        return log(figures(self.prepared).figures[self.statistic].predicted / self.measured)


def memory_rows(runs: Iterable[Run]) -> list[MemoryRow]:
    """Every figure of the runs that can be predicted."""
    found = []
    for run in runs:
        measured = [(statistic, size) for statistic, size in statistics(run) if size is not None]
        if not measured:
            continue
        try:
            prepared = prepare(run)
            known = figures(prepared).figures
        except (SkippedError, ProblemsError):
            continue
        found += [MemoryRow(run.source, name, prepared, size) for name, size in measured if name in known]
    return found
