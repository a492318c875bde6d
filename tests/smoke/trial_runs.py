"""Runs trials in one process group, as ``dsgen smoke`` does, and says what was found of each."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smoke_helpers import ROOT

sys.path.append(str(ROOT / "tests/formats/fsdp2"))

from fsdp2_folders import save, written

from dsgen.smoke.adapt import Adapted
from dsgen.smoke.decoders import default_decoder
from dsgen.smoke.jobs import Job
from dsgen.smoke.ops import prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.proof.deepspeed_trials import deepspeed_trials
from dsgen.smoke.proof.fsdp2_trials import fsdp2_trials
from dsgen.smoke.proof.judge import equality
from dsgen.smoke.proof.outcome import Finished
from dsgen.smoke.proof.request import trial_request
from dsgen.smoke.proof.values import Equality, Trial
from dsgen.smoke.run import Place, run_jobs
from dsgen.smoke.values import Options


@dataclass(frozen=True)
class Entry:
    """A trial and where its code or config lies."""

    trial: Trial
    where: dict[str, str]
    seed: int = 0


@dataclass(frozen=True)
class Came:
    """What came of a trial."""

    equal: Equality | None
    """None: it did not reach its end."""
    figures: Mapping[str, Any]
    reason: str = ""

    @property
    def failed(self) -> list[str]:
        """Names of the checks that fail."""
        return [check.name for check in self.equal.checks if not check.ok] if self.equal else ["end"]


def named(trials: Any, name: str) -> Trial:
    return next(trial for trial in trials if trial.name == name)


def deepspeed_entry(
    folder: Path, config: dict[str, Any], name: str, *, checkpointing: str = "none", processes: int = 2, seed: int = 0
) -> Entry:
    """A trial of a DeepSpeed config, in the batch sizes that it has."""
    model = folder / "model.py"
    folder.mkdir(parents=True, exist_ok=True)
    model.write_text(default_decoder(), "utf-8")
    adapted = Adapted(config=config, optimizer=None, changes=())
    trial = named(deepspeed_trials(adapted, (checkpointing, 1), processes), name)
    return Entry(trial, {"model": str(model)}, seed)


def fsdp2_entry(
    folder: Path,
    name: str,
    *,
    precision: str = "fp32",
    accumulation: int = 1,
    processes: int = 2,
    seed: int = 0,
    edit: Mapping[str, Mapping[str, str]] | None = None,
    **asked: Any,
) -> Entry:
    """A trial of a folder as build writes it; ``edit``: texts of its files to replace."""
    save(written(processes, precision=precision, accumulation=accumulation, **asked), folder)
    for file, replacements in (edit or {}).items():
        text = (folder / file).read_text("utf-8")
        for before, after in replacements.items():
            assert before in text, f"{file} has no {before!r}"
            text = text.replace(before, after)
        (folder / file).write_text(text, "utf-8")
    trial = named(fsdp2_trials(precision, accumulation), name)
    return Entry(trial, {"folder": str(folder), "model": str(folder / "model.py")}, seed)


def run_trials(entries: Mapping[str, Entry], folder: Path, processes: int) -> dict[str, Came]:
    """Each entry has a process group with the others, unless one before it has ended in the middle."""
    options = Options(device="cpu", processes=processes, timeout=200)
    said: list[str] = []
    deepspeed = any(entry.trial.subject != "fsdp2" for entry in entries.values())
    machine = probe(options, deepspeed, False, folder)
    extensions = prepare(["deepspeed_shm_comm"] if deepspeed else [], machine, options, folder, said.append)
    jobs = [
        Job(
            case=number,
            request=trial_request(entry.trial, entry.where, folder / f"config{number}.json", entry.seed),
            trial=entry.trial,
        )
        for number, entry in enumerate(entries.values())
    ]
    done = run_jobs(jobs, Place(folder, extensions, machine, options, processes, said.append))
    return {name: _came(entry.trial, done[number], processes) for number, (name, entry) in enumerate(entries.items())}


def _came(trial: Trial, finished: Finished, processes: int) -> Came:
    figures = finished.event("figures")
    if finished.failure is not None or figures is None:
        failure = finished.failure[1] if finished.failure else None
        return Came(None, {}, failure.reason if failure else "no figures")
    equal = equality([(trial, figures)], processes)
    return Came(equal, figures, equal.reason or "")


def with_subject(entry: Entry, subject: Path, mistake: str) -> Entry:
    """The same trial with code of the tests' own in the place of the product's."""
    trial = replace(
        entry.trial,
        subject=str(subject),
        content={**entry.trial.content, "mistake": mistake},
        layout=entry.trial.layout if subject.stem == "deepspeed" else {"format": subject.stem},
    )
    return replace(entry, trial=trial)
