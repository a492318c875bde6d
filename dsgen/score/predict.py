"""One run's prediction beside what was measured."""

import re
from dataclasses import dataclass
from typing import Literal

from dsgen.errors import ProblemsError
from dsgen.facts.constants import constant
from dsgen.hardware import Hardware
from dsgen.memory.account import account
from dsgen.memory.band import band
from dsgen.memory.ledger import DeviceAccount, Part
from dsgen.plan import Plan
from dsgen.score import component
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.machines import hardware_of
from dsgen.score.model import shapes_of
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target
from dsgen.units import GIB

Statistic = Literal["allocated", "reserved", "whole_gpu"]
_COLUMNS: tuple[tuple[Statistic, str], ...] = (
    ("allocated", "peak_alloc_gib"),
    ("reserved", "peak_reserved_gib"),
    ("whole_gpu", "peak_smi_gib"),
)
_CONTEXT = re.compile(r"(\d+) mib cuda context")
"""How a source's notes state the context that its card has; it depends on the CUDA version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One statistic in bytes."""

    predicted: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is expected of a run."""

    figures: dict[Statistic, Figure]
    fits: bool
    """What the run can't do without is no more than the card has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One statistic of one run, predicted or not."""

    run: Run
    statistic: Statistic
    measured: int | None
    """Bytes; None where the row has none of that statistic."""
    figure: Figure | None = None
    fits: bool | None = None
    skipped: str | None = None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        if self.figure is None or self.measured is None:
            return None
        return self.figure.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether what was measured lies in the band."""
        if self.figure is None or self.measured is None:
            return False
        return self.figure.low <= self.measured <= self.figure.high


def score(run: Run) -> tuple[Scored, ...]:
    """One for each statistic that the row gives, the nearest to the tensors first; whole_gpu where it gives none."""
    try:
        known = estimate(run)
    except SkippedError as reason:
        return _skipped(run, str(reason))
    except ProblemsError as error:
        return _skipped(run, "; ".join(problem.message for problem in error.problems))
    return tuple(
        Scored(run=run, statistic=statistic, measured=measured, figure=known.figures.get(statistic), fits=known.fits)
        for statistic, measured in statistics(run)
    )


def _skipped(run: Run, reason: str) -> tuple[Scored, ...]:
    return tuple(
        Scored(run=run, statistic=statistic, measured=measured, skipped=reason)
        for statistic, measured in statistics(run)
    )


def statistics(run: Run) -> list[tuple[Statistic, int | None]]:
    """What the row gives, the nearest to the tensors first; whole_gpu without a figure where it gives none."""
    found: list[tuple[Statistic, int | None]] = []
    for statistic, column in _COLUMNS:
        value = run.numbers[column]
        if value is not None:
            found.append((statistic, int(value * GIB)))
    return found or [("whole_gpu", None)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run read, with all that its memory depends on but the constants."""

    run: Run
    hardware: Hardware
    arguments: tuple[Plan, Shapes, Training, int, Hardware, Target] | None
    """Of the ledger; None for one module."""


def estimate(run: Run) -> Estimate:
    """Raises SkippedError or ProblemsError where the run can't be predicted."""
    return figures(prepare(run))


def prepare(run: Run) -> Prepared:
    """Raises SkippedError or ProblemsError where the run can't be predicted."""
    hardware = hardware_of(run)
    if run.texts["kind"] == "component":
        return Prepared(run=run, hardware=hardware, arguments=None)
    if run.counts["seq_len"] is None:
        raise SkippedError("the row does not state the sequence length")
    plan, target = plan_of(run)
    shapes = shapes_of(run)
    training = training_of(run, shapes.architecture.gated)
    trained = with_method(shapes, training.method)
    arguments = (plan, trained, training, run.counts["seq_len"], hardware, target)
    return Prepared(run=run, hardware=hardware, arguments=arguments)


def figures(prepared: Prepared) -> Estimate:
    """With the constants of now. Raises SkippedError for a module without a formula."""
    hardware = prepared.hardware
    if prepared.arguments is None:
        allocated = component.predicted_bytes(prepared.run)
        return Estimate(figures={"allocated": _figure(allocated, 0)}, fits=allocated <= hardware.gpu.memory)
    device = account(*prepared.arguments).device
    context = _context(prepared.run)
    cache = (device.reserved - device.allocated) * constant("band_cached")
    return Estimate(
        figures={
            "allocated": _figure(device.allocated, _tensor_band(device)),
            "reserved": _figure(device.reserved, _tensor_band(device), cache),
            "whole_gpu": _figure(device.whole_gpu + context, (device.high - device.low) / 2 / device.peak, cache),
        },
        fits=device.peak + context <= hardware.gpu.memory,
    )


def _context(run: Run) -> int:
    """What the run's CUDA context is larger than ours, where the source states it."""
    stated = _CONTEXT.search(run.texts["notes"])
    return int(stated[1]) * 2**20 - int(constant("cuda_context")) if stated else 0


def _figure(predicted: int, share: float, cache: float = 0) -> Figure:
    """``share``: half the ledger's band over what is predicted. A published run leaves more open than a plan does, so
    its band is never narrower than band_run. ``cache``: what more is open where the allocator's cache is seen, too."""
    half = predicted * max(share, constant("band_run")) + cache
    return Figure(predicted=predicted, low=int(predicted - half), high=int(predicted + half))


def _tensor_band(device: DeviceAccount) -> float:
    tensors: dict[Part, int] = dict(device.peak_moment.parts)
    tensors.pop("framework", None)
    return band(tensors) / sum(tensors.values())
