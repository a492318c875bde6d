"""A calibration as the file that it is kept in, and as text; and the errors without each source."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dsgen import __version__
from dsgen.facts.calibration import VERSION
from dsgen.facts.tunable import Kind, tunable
from dsgen.report.tables import aligned, share
from dsgen.score.calibrate import Part
from dsgen.score.leave_out import LIMIT, LeftOut

_NAMES = {"memory": "memory", "time": "step time"}


def calibration_json(parts: Mapping[Kind, Part], file: str, sha256: str, rows: int) -> str:
    """What ``--calibration`` reads: constants in the units of their rows, and what they rest on."""
    constants = {
        name: {
            "value": _rounded(each.value / tunable()[name].scale),
            "unit": tunable()[name].constant.unit,
            "default": tunable()[name].constant.stated,
            "rows": each.rows,
        }
        for part in parts.values()
        for name, each in part.tuned.items()
    }
    document = {
        "version": VERSION,
        "dsgen": __version__,
        "source": {"file": file, "sha256": sha256, "rows": rows},
        "constants": constants,
        "kept": {name: reason for part in parts.values() for name, reason in part.kept.items()},
        "errors": {
            kind: {"rows": part.rows, "before": part.before, "after": part.after, "held_out": part.held_out}
            for kind, part in parts.items()
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def calibration_text(parts: Mapping[Kind, Part]) -> str:
    """What was tuned, what was not, and what it brought."""
    return "\n".join(line for kind, part in parts.items() for line in _part(_NAMES[kind], part)) + "\n"


def _part(name: str, part: Part) -> Iterator[str]:
    if part.after is None:
        yield f"{name}: nothing tuned over {_figures(part.rows)}"
    else:
        yield (
            f"{name}: {_figures(part.rows)}, {share(part.before)} off with the defaults, {share(part.after)} tuned "
            f"({share(part.held_out)} on runs left out)"
        )
    lines = [("  constant", "value", "default", "unit", "figures")]
    for key, each in part.tuned.items():
        row = tunable()[key]
        value = f"{each.value / row.scale:.3g}"
        lines.append((f"  {key}", value, f"{row.constant.stated:.3g}", row.constant.unit, str(each.rows)))
    if part.tuned:
        yield from aligned(lines)
    reasons: dict[str, list[str]] = {}
    for key, reason in part.kept.items():
        reasons.setdefault(reason, []).append(key)
    for reason, names in reasons.items():
        yield f"  kept: {', '.join(names)}: {reason}"


def _figures(count: int) -> str:
    return f"{count} figure{'' if count == 1 else 's'}"


def left_out_text(found: Mapping[Kind, LeftOut | None]) -> str:
    """A table of sources for each kind."""
    return "\n\n".join("\n".join(_left_out(_NAMES[kind], each)) for kind, each in found.items()) + "\n"


def _left_out(name: str, found: LeftOut | None) -> Iterator[str]:
    if found is None:
        yield f"{name}: fewer than two sources have figures"
        return
    yield f"{name}: mean error of a source, its constants estimated with it and without it"
    lines = [("source", "figures", "with", "without")]
    for source, held in found.sources.items():
        lines.append((source or "-", str(held.count), share(held.within), share(held.without)))
    lines.append(("each source alike", "", share(found.within), share(found.without)))
    yield from aligned(lines)
    yield f"{found.ratio:.2f} times the error with it (bound {LIMIT})"
    moved = ", ".join(f"{key} {value:.2f}" for key, value in found.estimated.items())
    yield f"estimated over what is stated: {moved}"


def left_out_fields(found: Mapping[Kind, LeftOut | None]) -> dict[str, Any]:
    """The same for JSON."""
    return {kind: None if each is None else _fields(each) for kind, each in found.items()}


def _fields(found: LeftOut) -> dict[str, Any]:
    return {
        "within": found.within,
        "without": found.without,
        "ratio": found.ratio,
        "limit": LIMIT,
        "estimated_over_stated": dict(found.estimated),
        "sources": {
            source: {"figures": held.count, "within": held.within, "without": held.without}
            for source, held in found.sources.items()
        },
    }
