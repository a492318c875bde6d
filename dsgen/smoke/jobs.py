"""What the ranks do for each input: train it as it is, then the trials of the proof."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dsgen.smoke.adapt import Adapted, adapt
from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.adapt.folder import Read, copy_of, has_own_loop, read_folder
from dsgen.smoke.proof.deepspeed_trials import deepspeed_trials, not_comparable
from dsgen.smoke.proof.fsdp2_trials import fsdp2_trials
from dsgen.smoke.proof.request import trial_request
from dsgen.smoke.proof.values import Trial
from dsgen.smoke.values import Case, Machine, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing for the ranks to do."""

    case: int
    request: dict[str, object]
    trial: Trial | None = None
    """None: the training itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An input as it will be run."""

    case: Case
    adapted: Adapted
    jobs: tuple[Job, ...]
    folder: Path | None
    """The copy of the folder that was named."""
    not_compared: str | None
    """Why there are no trials."""


def prepare_case(index: int, case: Case, machine: Machine, options: Options, processes: int, folder: Path) -> Prepared:
    """``folder`` is the run's own."""
    own = None if case.folder is None else copy_of(case.folder, folder / f"folder{index}")
    reason = _not_asked(machine, options)
    if case.format == "fsdp2":
        assert own is not None
        return _fsdp2(index, case, own, options, processes, reason)
    adapted = adapt(case, machine, options, processes, folder)
    return _deepspeed(index, case, adapted, own, options, processes, folder, reason)


def _not_asked(machine: Machine, options: Options) -> str | None:
    if options.proof is False:
        return "--no-proof"
    if options.proof is None and machine.device != "cpu":
        return "its tolerances are known for CPUs; --proof compares on this GPU, --device cpu on the CPU"
    return None


def _deepspeed(
    index: int,
    case: Case,
    adapted: Adapted,
    own: Path | None,
    options: Options,
    processes: int,
    folder: Path,
    reason: str | None,
) -> Prepared:
    config, model = folder / f"config{index}.json", folder / f"model{index}.py"
    # DeepSpeed reads the file itself, as it would from a training script.
    config.write_text(json.dumps(adapted.config, indent=2), encoding="utf-8")
    model.write_text(case.decoder, encoding="utf-8")
    checkpointing = (case.checkpointing.kind, case.checkpointing.every)
    request: dict[str, object] = {
        "kind": "deepspeed",
        "config": str(config),
        "model": str(model),
        "checkpointing": list(checkpointing),
        "optimizer": adapted.optimizer,
        "steps": options.steps,
        "seed": options.seed,
    }
    reason = reason or not_comparable(Edits(adapted.config))
    # Trials are made from the config that runs, and only if it does: a config may hold anything at all.
    trials = [] if reason else list(readable_trials(adapted, checkpointing, processes))
    if not reason and not trials:
        reason = "the batch sizes or the optimizer are not such that a plain loop could follow them"
    where = {"model": str(model)}
    if own is not None and has_own_loop(own):
        # The folder's own loop, rather than one of ours around the same engine.
        trials, where = [replace(trial, subject="deepspeed_folder") for trial in trials], {**where, "folder": str(own)}
    elif own is not None and (own / "train.py").is_file():
        note = "its train.py has no loop that build has written: the config is compared in a loop of dsgen's own"
        case = replace(case, notes=(*case.notes, note))
    return _prepared(index, case, adapted, request, trials, where, own, folder, options, reason)


def readable_trials(adapted: Adapted, checkpointing: tuple[str, int], processes: int) -> list[Trial]:
    """The trials of a config; none where its values are of types that DeepSpeed will refuse."""
    try:
        return list(deepspeed_trials(adapted, checkpointing, processes))
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        return []


def _fsdp2(index: int, case: Case, own: Path, options: Options, processes: int, reason: str | None) -> Prepared:
    read: Read = read_folder(own, processes)
    case = replace(case, notes=(*case.notes, *read.notes))
    request: dict[str, object] = {
        "kind": "fsdp2",
        "folder": str(own),
        "micro_batch": read.micro_batch,
        "accumulation": read.accumulation,
        "steps": options.steps,
        "seed": options.seed,
    }
    adapted = Adapted(config={}, optimizer=None, changes=read.changes)
    trials = [] if reason else list(fsdp2_trials(read.precision, read.accumulation))
    where = {"folder": str(own), "model": str(own / "model.py")}
    return _prepared(index, case, adapted, request, trials, where, own, own.parent, options, reason)


def _prepared(
    index: int,
    case: Case,
    adapted: Adapted,
    request: dict[str, object],
    trials: Sequence[Trial],
    where: dict[str, str],
    own: Path | None,
    folder: Path,
    options: Options,
    reason: str | None,
) -> Prepared:
    jobs = [Job(case=index, request=request)]
    for number, trial in enumerate(trials):
        file = folder / f"config{index}-trial{number}.json"
        jobs.append(Job(case=index, request=trial_request(trial, where, file, options.seed), trial=trial))
    return Prepared(case=case, adapted=adapted, jobs=tuple(jobs), folder=own, not_compared=reason)
