"""What ``dsgen score`` shows: every row, and how well the file was predicted."""

from collections.abc import Mapping
from dataclasses import dataclass

from dsgen.facts.tunable import Kind
from dsgen.score.leave_out import LeftOut
from dsgen.score.predict import Scored
from dsgen.score.runs import Runs
from dsgen.score.summary import Summary
from dsgen.score.throughput import Speed
from dsgen.score.throughput_summary import ThroughputSummary


@dataclass(frozen=True, slots=True)
class ScoreView:
    """One file."""

    runs: Runs
    scored: tuple[tuple[Scored, ...], ...]
    summary: Summary
    speeds: tuple[Speed, ...]
    """Throughput of the same rows, in the same order."""
    throughput: ThroughputSummary
    left_out: Mapping[Kind, LeftOut | None] | None = None
    """Errors without each source, where they were asked for."""

    @property
    def skipped(self) -> Mapping[str, int]:
        """Reasons, the most frequent first, with how many rows each cost."""
        found: dict[str, int] = {}
        for each in self.scored:
            if each[0].skipped:
                found[each[0].skipped] = found.get(each[0].skipped, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
