"""What has to differ from the file for this machine and this tiny model: as little as possible, all of it listed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgen.smoke.adapt.auto import fill
from dsgen.smoke.adapt.batch import shrink
from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.adapt.machine import gpu_features, groups, monitors, nvme, persistence
from dsgen.smoke.adapt.optimizer import optimizer
from dsgen.smoke.adapt.precision import precision
from dsgen.smoke.change import Change
from dsgen.smoke.values import Case, Machine, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """What is run, and how it differs from what was given."""

    config: dict[str, Any]
    optimizer: dict[str, Any] | None
    """Made by the worker and passed to deepspeed.initialize, where the config has none."""
    changes: tuple[Change, ...]


def adapt(case: Case, machine: Machine, options: Options, processes: int, folder: Path) -> Adapted:
    """Fits a config to this machine; ``folder`` is the run's own. Keys that dsgen does not know stay untouched."""
    edits = Edits(case.config)
    if case.filling is not None:
        fill(edits, case.filling, options.steps)
    shrink(edits, _data_parallel(edits, processes))
    precision(edits, machine)
    nvme(edits, machine, folder)
    gpu_features(edits, machine)
    groups(edits, processes)
    persistence(edits)
    passed = optimizer(edits, machine, options.native_ops)
    monitors(edits)
    changes = edits.changes()
    if passed is not None:
        why = "the file has none: passed to deepspeed.initialize, as the training script would"
        changes = (*changes, Change(key="optimizer", before=None, after=passed, why=why))
    return Adapted(config=edits.config, optimizer=passed, changes=changes)


def _data_parallel(edits: Edits, processes: int) -> int:
    """Ranks that see different data; tensor- and sequence-parallel ranks share theirs."""
    shared = 1
    for key in ("tensor_parallel.autotp_size", "sequence_parallel_size"):
        size = edits.get(key)
        if isinstance(size, int) and size > 1:
            shared *= size
    return max(1, processes // shared)
