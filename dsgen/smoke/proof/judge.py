"""Figures of a trial to checks, and checks to a verdict."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsgen.smoke.proof.expected_collectives import Expected, ddp, deepspeed, fsdp2
from dsgen.smoke.proof.mistakes import probable_mistake
from dsgen.smoke.proof.tolerances import TOLERANCES
from dsgen.smoke.proof.values import Check, Equality, Trial

Figures = Mapping[str, Any]


def checks(trial: Trial, figures: Figures, processes: int) -> tuple[Check, ...]:
    """All checks of a trial, those that can't be made left out."""
    found = [_data(trial, figures), _norm(trial, figures), _losses(trial, figures), _weights(trial, figures)]
    return (*(check for check in found if check is not None), *_collectives(trial, figures, processes))


def equality(trials: Sequence[tuple[Trial, Figures]], processes: int, notes: Sequence[str] = ()) -> Equality:
    """The verdict over all trials of a run."""
    made = [(trial, figures, checks(trial, figures, processes)) for trial, figures in trials]
    reason = None
    for trial, figures, found in made:
        failed = [check for check in found if not check.ok]
        if failed and reason is None:
            reason = f"{trial.name}: {failed[0].text}"
            mistake = probable_mistake(trial, figures, found, processes)
            reason += f"; {mistake}" if mistake else ""
    return Equality(
        verdict=reason is None,
        reason=reason,
        checks=tuple(check for _, _, found in made for check in found),
        traits=tuple(dict.fromkeys(trait for trial, _ in trials for trait in trial.traits)),
        changes=tuple({change.key: change for trial, _ in trials for change in trial.changes}.values()),
        notes=tuple(notes),
    )


def _data(trial: Trial, figures: Figures) -> Check | None:
    """Whether the code's own loader gives ranks data of their own, where the trial has asked it."""
    same = figures["layout"].get("same_data")
    if same is None:
        return None
    text = "ranks draw the same sequences" if same else "every rank draws sequences of its own"
    return Check(trial=trial.name, name="data", ok=not same, difference=None, tolerance=None, text=text)


def _norm(trial: Trial, figures: Figures) -> Check | None:
    norm, plain = figures["norms"][0], figures["plain_norms"][0]
    if norm is None:
        return None  # a trait says why
    tolerance = TOLERANCES[trial.tolerance].norm
    text = f"the first gradient's norm is {norm:.6g}, of the plain loop {plain:.6g}"
    return _compared(trial, "first gradient norm", _relative(norm, plain), tolerance, text)


def _losses(trial: Trial, figures: Figures) -> Check:
    pairs = list(zip(figures["losses"], figures["plain_losses"], strict=True))
    differences = [_relative(loss, plain) for loss, plain in pairs]
    worst = max(range(len(pairs)), key=lambda index: _order(differences[index]))
    loss, plain = pairs[worst]
    text = f"the loss of step {worst + 1} is {loss:.6g}, of the plain loop {plain:.6g}"
    return _compared(trial, "losses", differences[worst], TOLERANCES[trial.tolerance].loss, text)


def _weights(trial: Trial, figures: Figures) -> Check:
    apart, moved = figures["apart"], figures["moved"]
    difference = apart / moved if moved else (0.0 if apart == 0 else math.inf)
    text = f"the weights end {difference:.2g} of their movement away from the plain loop's"
    return _compared(trial, "weights", difference, TOLERANCES[trial.tolerance].weights, text)


def _compared(trial: Trial, name: str, difference: float, tolerance: float, text: str) -> Check:
    return Check(
        trial=trial.name, name=name, ok=difference <= tolerance, difference=difference, tolerance=tolerance, text=text
    )


def _collectives(trial: Trial, figures: Figures, processes: int) -> Iterator[Check]:
    if processes == 1:
        return  # one rank has nobody to talk to
    for expected in expected_of(trial, figures):
        steps = figures["collectives"] if expected.first_step_too else figures["collectives"][1:]
        seen = [count(step, expected) for step in steps]
        wrong = [number for number in seen if not expected.low <= number <= expected.high]
        number = wrong[0] if wrong else seen[-1]
        yield Check(
            trial=trial.name,
            name="collectives",
            ok=not wrong,
            difference=None,
            tolerance=None,
            text=f"{expected.what} in a step: {_amount(number, expected)}, expected {_bounds(expected)}",
        )


def expected_of(trial: Trial, figures: Figures) -> list[Expected]:
    """What the layout of a trial makes the ranks say; nothing where the format has no rule."""
    layout = {**figures["layout"], **trial.layout}  # the plan has the last word
    if layout.get("format") == "deepspeed":
        return list(
            deepspeed(
                stage=layout["stage"],
                accumulation=trial.accumulation,
                trained=figures["parameters"],
                elements=layout["elements"],
                reduce_bucket=layout["reduce_bucket"],
            )
        )
    if layout.get("format") == "fsdp2":
        keys = ("units", "replicated", "reduce_each")
        return list(fsdp2(accumulation=trial.accumulation, **{key: layout[key] for key in keys}))
    if layout.get("format") == "ddp":
        return list(ddp(buckets=layout["buckets"]))
    return []


def count(step: Mapping[str, Mapping[str, int]], expected: Expected) -> int:
    """What a step's collectives come to, in the unit of ``expected``."""
    return sum(step[kind][expected.unit] for kind in expected.kinds if kind in step)


def _amount(number: float, expected: Expected) -> str:
    return f"{number:.0f}" + (" elements" if expected.unit == "elements" else "")


def _bounds(expected: Expected) -> str:
    low, high = f"{expected.low:.0f}", f"{expected.high:.0f}"
    return low if low == high else f"{low} to {high}"


def _relative(value: float, plain: float) -> float:
    difference = abs(value - plain) / abs(plain) if plain else (0.0 if value == 0 else math.inf)
    return math.inf if math.isnan(difference) else difference


def _order(difference: float) -> float:
    return math.inf if math.isnan(difference) else difference
