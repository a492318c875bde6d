"""One run's ledger beside what was measured."""

from dataclasses import dataclass
from typing import Literal

from dsgen.errors import ProblemsError
from dsgen.memory.account import account
from dsgen.memory.band import band
from dsgen.memory.ledger import DeviceAccount, Ledger, Part
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.machines import hardware_of
from dsgen.score.model import shapes_of
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.shapes.lora import with_method
from dsgen.units import GIB

Statistic = Literal["allocated", "reserved", "whole_gpu"]
_COLUMNS: tuple[tuple[Statistic, str], ...] = (
    ("allocated", "peak_alloc_gib"),
    ("reserved", "peak_reserved_gib"),
    ("whole_gpu", "peak_smi_gib"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One run, predicted or not."""

    run: Run
    statistic: Statistic
    measured: int | None
    """Bytes; None where the row has none of that statistic."""
    predicted: int | None = None
    low: int | None = None
    high: int | None = None
    fits: bool | None = None
    skipped: str | None = None
    ledger: Ledger | None = None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted / self.measured - 1


def score(run: Run) -> tuple[Scored, ...]:
    """One for each statistic that the row gives, the nearest to the tensors first; whole_gpu where it gives none."""
    ledger, memory, skipped = _ledger(run)
    return tuple(_scored(run, statistic, measured, ledger, memory, skipped) for statistic, measured in _measured(run))


def _measured(run: Run) -> list[tuple[Statistic, int | None]]:
    found: list[tuple[Statistic, int | None]] = []
    for statistic, column in _COLUMNS:
        value = run.numbers[column]
        if value is not None:
            found.append((statistic, int(value * GIB)))
    return found or [("whole_gpu", None)]


def _ledger(run: Run) -> tuple[Ledger | None, int, str | None]:
    try:
        if run.texts["kind"] == "component":
            raise SkippedError("one module, not a training run")
        if run.counts["seq_len"] is None:
            raise SkippedError("the row does not state the sequence length")
        hardware = hardware_of(run)
        plan, target = plan_of(run)
        shapes = shapes_of(run)
        training = training_of(run, shapes.architecture.gated)
        trained = with_method(shapes, training.method)
        return account(plan, trained, training, run.counts["seq_len"], hardware, target), hardware.gpu.memory, None
    except SkippedError as reason:
        return None, 0, str(reason)
    except ProblemsError as error:
        return None, 0, "; ".join(problem.message for problem in error.problems)


def _scored(
    run: Run, statistic: Statistic, measured: int | None, ledger: Ledger | None, memory: int, skipped: str | None
) -> Scored:
    if ledger is None:
        return Scored(run=run, statistic=statistic, measured=measured, skipped=skipped)
    device = ledger.device
    predicted = {"allocated": device.allocated, "reserved": device.reserved, "whole_gpu": device.peak}[statistic]
    half = predicted * _band(device, statistic)
    return Scored(
        run=run,
        statistic=statistic,
        measured=measured,
        predicted=predicted,
        low=int(predicted - half),
        high=int(predicted + half),
        fits=device.peak <= memory,
        ledger=ledger,
    )


def _band(device: DeviceAccount, statistic: Statistic) -> float:
    """Half the width of the band over what is predicted: of the whole-GPU figure as the ledger says; of tensors alone
    without what is outside of them."""
    if statistic == "whole_gpu":
        return (device.high - device.low) / 2 / device.peak
    tensors: dict[Part, int] = dict(device.peak_moment.parts)
    tensors.pop("framework", None)
    return band(tensors) / sum(tensors.values())
