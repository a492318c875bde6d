"""A score for people: a table by source, all together, and why rows were skipped."""

from collections.abc import Iterator

from dsgen.report.calibration import left_out_text
from dsgen.report.calibration_used import calibration_words
from dsgen.report.score_throughput import throughput_rows, throughput_skipped, throughput_text
from dsgen.report.score_view import ScoreView
from dsgen.report.tables import aligned, share
from dsgen.score.predict import Scored
from dsgen.score.summary import Errors, Group
from dsgen.units import GIB

_HEAD = ("source", "rows", "median", "90th", "bias", "in band", "fits kept", "false fits", "skipped")

_ROW_HEAD = ("row", "source", "model", "statistic", "measured", "predicted", "error", "outcome")


def score_text(view: ScoreView, *, rows: bool) -> str:
    """``rows``: every row too."""
    skipped = [*_skipped(view), *throughput_skipped(view)]
    blocks = [list(_sources(view)), list(_together(view)), list(throughput_text(view)), skipped]
    blocks += [left_out_text(view.left_out).splitlines()] if view.left_out is not None else []
    blocks += [[f"calibrated: {words}"]] if (words := calibration_words()) else []
    if rows:
        blocks = [list(_rows(view)), list(throughput_rows(view)), *blocks]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _sources(view: ScoreView) -> Iterator[str]:
    lines = [_HEAD, *(_line(name or "-", group) for name, group in view.summary.sources.items())]
    lines.append(_line("each source alike", view.summary.all))
    lines.append(_line("all inputs known", view.summary.complete))
    yield from aligned(lines)


def _line(name: str, group: Group) -> tuple[str, ...]:
    errors, outcomes = group.errors, group.outcomes
    return (
        name,
        str(errors.count),
        share(errors.median),
        share(errors.ninetieth),
        share(errors.bias, signed=True),
        share(errors.coverage),
        f"{outcomes.accepted}/{outcomes.fits}" if outcomes.fits else "-",
        f"{outcomes.false_fits}/{outcomes.out_of_memory}" if outcomes.out_of_memory else "-",
        str(group.skipped),
    )


def _together(view: ScoreView) -> Iterator[str]:
    for statistic, errors in view.summary.by_statistic.items():
        yield f"{statistic}: {_said(errors)}"


def _said(errors: Errors) -> str:
    if not errors.count:
        return "no row predicted"
    return (
        f"{errors.count} rows, median error {share(errors.median)}, 90th percentile {share(errors.ninetieth)}, "
        f"{share(errors.coverage)} in their bands, which are {share(errors.widest)} wide at most"
    )


def _skipped(view: ScoreView) -> Iterator[str]:
    for problem in view.runs.problems:
        yield f"left out: {problem.place}: {problem.message}"
    for reason, count in view.skipped.items():
        yield f"skipped: {count} row{'s' if count > 1 else ''}: {reason}"
    if view.runs.unknown_columns:
        yield f"unknown columns, not used: {', '.join(view.runs.unknown_columns)}"


def _rows(view: ScoreView) -> Iterator[str]:
    lines: list[tuple[str, ...]] = [_ROW_HEAD]
    for each in view.scored:
        for scored in each:
            lines.append(_one(scored))
    yield from aligned(lines)


def _one(scored: Scored) -> tuple[str, ...]:
    outcome = "skipped" if scored.fits is None else "fits" if scored.fits else "oom"
    if scored.fits is not None and scored.run.texts["outcome"] not in ("", outcome):
        outcome += f" (measured: {scored.run.texts['outcome']})"
    return (
        scored.run.row_id,
        scored.run.source,
        scored.run.texts["model"],
        scored.statistic,
        _gib(scored.measured),
        _gib(scored.figure.predicted if scored.figure else None),
        share(scored.error, signed=True),
        outcome,
    )


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / GIB:.2f} GiB"
