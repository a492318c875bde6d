"""What a comparison with a plain loop came to, as text and as JSON."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from dsgen.smoke.proof.values import Check, Equality
from dsgen.smoke.values import Script


def equality_text(equal: Equality) -> Iterator[str]:
    """Lines of a paragraph, one per trial; the checks that fail have lines of their own."""
    if equal.verdict is None:
        yield f"  not compared with a plain loop: {equal.reason}"
    elif equal.verdict:
        yield "  equal to a plain loop in one process (differences, and what is allowed):"
    else:
        yield "  NOT equal to a plain loop in one process (differences, and what is allowed):"
    for trial, checks in groupby(equal.checks, key=lambda check: check.trial):
        found = list(checks)
        figures = [_short(check) for check in found if check.difference is not None]
        talks = [check for check in found if check.name == "collectives"]
        if talks and all(check.ok for check in talks):
            figures.append("collectives as planned")
        yield f"    {trial}: {', '.join(figures)}"
        yield from (f"      {check.text}" for check in found if not check.ok)
    for trait in equal.traits:
        yield f"    known: {trait.text} ({trait.source})"
    if equal.changes:
        yield f"    changed for the comparison alone: {', '.join(change.key for change in equal.changes)}"
    for note in equal.notes:
        yield f"    note: {note}"


def _short(check: Check) -> str:
    return f"{check.name} {check.difference:.0e} ({check.tolerance:.0e}){'' if check.ok else ' FAILS'}"


def script_text(script: Script) -> str:
    """One line on the folder's own train.py."""
    if script.ok is None:
        return f"  {script.launcher}: {script.reason}"
    if not script.ok:
        return f"  {script.launcher} --size tiny: {script.reason}"
    losses = f", losses {', '.join(f'{loss:.4f}' for loss in script.losses)}" if script.losses else ""
    return f"  {script.launcher} --size tiny: starts and trains{losses}, {script.seconds or 0:.1f} s"


def equality_json(equal: Equality) -> dict[str, Any]:
    """``verdict`` true, false, or null with ``reason``."""
    return {
        "verdict": equal.verdict,
        "reason": equal.reason,
        "checks": [
            {
                "trial": check.trial,
                "check": check.name,
                "ok": check.ok,
                "difference": _finite(check.difference),
                "tolerance": check.tolerance,
                "text": check.text,
            }
            for check in equal.checks
        ],
        "traits": [{"name": trait.name, "text": trait.text, "source": trait.source} for trait in equal.traits],
        "changes": [
            {"key": change.key, "from": change.before, "to": change.after, "why": change.why}
            for change in equal.changes
        ],
        "notes": list(equal.notes),
    }


def script_json(script: Script) -> dict[str, Any]:
    """``ok`` true, false, or null where it could not be tried."""
    return {
        "launcher": script.launcher,
        "ok": script.ok,
        "losses": [_finite(loss) for loss in script.losses],
        "seconds": script.seconds,
        "reason": script.reason,
        "log": script.log,
    }


def _finite(value: float | None) -> float | str | None:
    return value if value is None or value - value == 0 else str(value)
