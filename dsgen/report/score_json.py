"""A score as JSON: the shape that scripts rely on. Bytes are plain numbers, errors are shares; what is absent is
null."""

import json
from dataclasses import asdict
from typing import Any

from dsgen.report.calibration import left_out_fields
from dsgen.report.calibration_used import calibration_fields
from dsgen.report.score_view import ScoreView
from dsgen.score.predict import Scored
from dsgen.score.summary import Group
from dsgen.score.throughput import Speed
from dsgen.score.throughput_summary import Throughput

VERSION = 1


def score_json(view: ScoreView) -> str:
    """One object, keys in a fixed order, a newline at the end."""
    document = {
        "version": VERSION,
        "rows": [_row(each, speed) for each, speed in zip(view.scored, view.speeds, strict=True)],
        "sources": {
            name: _group(group) | {"throughput": _throughput(view.throughput.sources.get(name))}
            for name, group in view.summary.sources.items()
        },
        "summary": _group(view.summary.all)
        | {
            "complete": _group(view.summary.complete),
            "by_statistic": {name: asdict(errors) for name, errors in view.summary.by_statistic.items()},
            "throughput": _throughput(view.throughput.all) | {"mean_error_of_sources": view.throughput.mean_of_sources},
        },
        "leave_one_out": None if view.left_out is None else left_out_fields(view.left_out),
        "calibration": calibration_fields(),
        "left_out": [{"line": _line(problem), "message": problem.message} for problem in view.runs.problems],
        "unknown_columns": list(view.runs.unknown_columns),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _line(problem: Any) -> int | None:
    return problem.place.line if problem.place else None


def _row(each: tuple[Scored, ...], speed: Speed) -> dict[str, Any]:
    first, *others = each
    return {
        "row_id": first.run.row_id,
        "source_id": first.run.source,
        **_statistic(first),
        "predicted_outcome": None if first.fits is None else "fits" if first.fits else "oom",
        "measured_outcome": first.run.texts["outcome"] or None,
        **_speed(speed),
        "skipped": first.skipped,
        "other_statistics": [_statistic(other) for other in others],
    }


def _speed(speed: Speed) -> dict[str, Any]:
    """Measured tokens are null where samples vary in length: their speed is in samples."""
    samples = speed.measured if speed.relative else None
    return {
        "predicted_tokens_per_second_per_gpu": speed.predicted,
        "measured_tokens_per_second_per_gpu": None if speed.relative else speed.measured,
        "measured_samples_per_second_per_gpu": samples,
        "predicted_step_seconds": speed.step and speed.step.seconds,
        "predicted_step_parts": speed.step and dict(speed.step.parts),
        "throughput_skipped": speed.skipped,
    }


def _throughput(group: Throughput | None) -> dict[str, Any]:
    if group is None:
        group = Throughput(count=0, mean=None, bias=None, rank_correlation=None, pairs=0, right=0, skipped=0)
    return {
        "n": group.count,
        "mean_error": group.mean,
        "bias": group.bias,
        "rank_correlation": group.rank_correlation,
        "pairs": group.pairs,
        "right_pairs": group.right,
        "right_winners": group.right / group.pairs if group.pairs else None,
        "skipped": group.skipped,
    }


def _statistic(scored: Scored) -> dict[str, Any]:
    figure = scored.figure
    return {
        "statistic": scored.statistic,
        "predicted_bytes": figure and figure.predicted,
        "low_bytes": figure and figure.low,
        "high_bytes": figure and figure.high,
        "measured_bytes": scored.measured,
    }


def _group(group: Group) -> dict[str, Any]:
    """Flat, by the names of section 5 of the contract."""
    return {
        "n": group.errors.count,
        "median_error": group.errors.median,
        "p90_error": group.errors.ninetieth,
        "bias": group.errors.bias,
        "band_coverage": group.errors.coverage,
        "band_width": group.errors.widest,
        "skipped": group.skipped,
        "fits": group.outcomes.fits,
        "accepted_fits": group.outcomes.accepted,
        "out_of_memory": group.outcomes.out_of_memory,
        "false_fits": group.outcomes.false_fits,
    }
