"""Throughput in a score for people: a table by source, and all together."""

from collections.abc import Iterator

from dsgen.report.score_view import ScoreView
from dsgen.report.tables import aligned, share
from dsgen.score.throughput import Speed
from dsgen.score.throughput_summary import Throughput

_HEAD = ("throughput by source", "rows", "mean error", "bias", "rank", "right winners", "skipped")
_ROW_HEAD = ("row", "source", "model", "measured", "predicted", "error", "step", "most of it")


def throughput_text(view: ScoreView) -> Iterator[str]:
    """Rank: Spearman's correlation among rows of one source and GPU. Right winners: of pairs of such rows that differ
    by more than a tenth."""
    summary = view.throughput
    if not summary.sources:
        return
    lines = [_HEAD, *(_line(name or "-", group) for name, group in summary.sources.items())]
    lines.append(_line("all rows", summary.all))
    lines.append(("each source alike", "", share(summary.mean_of_sources), "", "", "", ""))
    yield from aligned(lines)


def throughput_rows(view: ScoreView) -> Iterator[str]:
    """Every row with a speed."""
    lines = [_ROW_HEAD, *(_row(speed) for speed in view.speeds if speed.measured is not None)]
    if len(lines) > 1:
        yield from aligned(lines)


def throughput_skipped(view: ScoreView) -> Iterator[str]:
    """Reasons of rows with a speed that were not predicted, the most frequent first."""
    found: dict[str, int] = {}
    for speed in view.speeds:
        if speed.measured is not None and speed.skipped:
            found[speed.skipped] = found.get(speed.skipped, 0) + 1
    for reason, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        yield f"no throughput: {count} row{'s' if count > 1 else ''}: {reason}"


def _line(name: str, group: Throughput) -> tuple[str, ...]:
    return (
        name,
        str(group.count),
        share(group.mean),
        share(group.bias, signed=True),
        "-" if group.rank_correlation is None else f"{group.rank_correlation:.2f}",
        f"{group.right}/{group.pairs}" if group.pairs else "-",
        str(group.skipped),
    )


def _row(speed: Speed) -> tuple[str, ...]:
    unit = "samples/s" if speed.relative else "tokens/s"
    largest = max(speed.step.parts.items(), key=lambda item: item[1])[0] if speed.step else "-"
    return (
        speed.run.row_id,
        speed.run.source,
        speed.run.texts["model"],
        _rate(speed.measured, unit),
        _rate(speed.comparable, unit),
        share(speed.error, signed=True),
        f"{speed.step.seconds:.3f} s" if speed.step else "-",
        largest,
    )


def _rate(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}"
