"""Runs inputs: probe the machine, fit each to it, build what is missing, train, compare, judge."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dsgen.errors import MissingToolError
from dsgen.signals import end_on_signals
from dsgen.smoke.group import Ended, environment_of, run_group
from dsgen.smoke.jobs import Job, Prepared, prepare_case
from dsgen.smoke.judge import verdict, why_it_ended
from dsgen.smoke.locks import Say, clear_stale, held
from dsgen.smoke.ops import extensions_folder, needed, prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.proof.outcome import Finished, with_equality
from dsgen.smoke.script import run_script
from dsgen.smoke.values import Case, Failure, Machine, Options, Report, Run

_CPU_PROCESSES = 2
_MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")


@dataclass(frozen=True)
class Place:
    """Where everything of one command happens."""

    folder: Path
    extensions: Path
    machine: Machine
    options: Options
    processes: int
    say: Say


def smoke(cases: Sequence[Case], options: Options, say: Say) -> Report:
    """Runs every case for a few steps; one that fails does not take the others with it."""
    with end_on_signals(), _folder(options) as folder:
        uses_deepspeed = any(case.format == "deepspeed" for case in cases)
        uses_nvme = any('"nvme"' in json.dumps(case.config) for case in cases)
        machine = probe(options, uses_deepspeed, uses_nvme, folder)
        processes = options.processes or machine.devices or _CPU_PROCESSES
        prepared = [prepare_case(i, case, machine, options, processes, folder) for i, case in enumerate(cases)]
        extensions = extensions_folder(machine)
        if uses_deepspeed:
            configs = [one.adapted.config for one in prepared if one.case.format == "deepspeed"]
            ops = list(dict.fromkeys(op for config in configs for op in needed(config, machine)))
            extensions = prepare(ops, machine, options, folder, say)
        place = Place(folder, extensions, machine, options, processes, say)
        finished = run_jobs([job for one in prepared for job in one.jobs], place)
        runs, first = [], 0
        for one in prepared:
            own = [finished.get(number) for number in range(first, first + len(one.jobs))]
            runs.append(_script(one, _judge(one, own, place), place))
            first += len(one.jobs)
        report = Report(machine=machine, runs=tuple(runs))
        if not all(run.ok for run in report.runs):
            _keep(folder)
    return report


def run_jobs(jobs: Sequence[Job], place: Place) -> dict[int, Finished]:
    """What came of each job, by its number. Jobs share a process group until one fails; a new one goes on after it.

    The trials of an input whose training fails are left out, and those after a trial that fails.
    """
    done: dict[int, Finished] = {}
    left = list(range(len(jobs)))
    group = failed_starts = 0
    while left:
        names = f"{len(left)} {'trainings' if len(left) > 1 else 'training'}"
        place.say(f"starting {place.processes} processes on {place.machine.device} for {names}")
        if group:
            # Ranks that were stopped may have been loading an op.
            with held(place.extensions, place.options.build_timeout, place.say):
                clear_stale(place.extensions, place.options.build_timeout, place.say)
        kills = _oom_kills()
        ended = run_group(
            [jobs[i].request for i in left],
            f"group{group}",
            place.folder,
            place.extensions,
            place.machine,
            place.options,
            place.processes,
        )
        group += 1
        for position in range(ended.finished):
            done[left[position]] = Finished(ended, position, None)
        rest = left[ended.finished :]
        if not rest:
            break
        if _never_started(ended) and not ended.timed_out and failed_starts == 0:
            failed_starts += 1
            place.say("the processes did not find each other; trying once more")
            continue
        failure = why_it_ended(ended, place.options.timeout, _oom_kills() - kills)
        # What keeps a group from starting keeps the next one from it, too.
        blamed = rest if _never_started(ended) else rest[:1]
        for i in blamed:
            done[i] = Finished(ended, left.index(i), failure)
        left = [i for i in rest if i not in blamed and jobs[i].case != jobs[rest[0]].case]
    return done


def _judge(one: Prepared, finished: Sequence[Finished | None], place: Place) -> Run:
    """The run of one input: its training, and its trials where there are any."""
    training, *rest = finished
    assert training is not None
    run = verdict(one.case, one.adapted, place.machine, training.ended, training.position, training.failure)
    if not run.ok:
        return run
    trials = [(job.trial, came) for job, came in zip(one.jobs[1:], rest, strict=True) if job.trial is not None]
    return with_equality(run, trials, one.not_compared, place.processes)


def _script(one: Prepared, run: Run, place: Place) -> Run:
    """Starts the folder's own train.py, if there is one."""
    if one.folder is None or not run.ok:
        return run
    environment = environment_of(place.machine, place.options, place.processes, place.extensions)
    script = run_script(one.folder, place.options.steps, place.processes, place.options.timeout, environment)
    if script is None or script.ok is not False:
        return replace(run, script=script)
    failure = Failure(reason=f"{script.launcher} --size tiny {script.reason}", phase=script.launcher, log=script.log)
    return replace(run, script=script, outcome="failed", error=failure)


def _never_started(ended: Ended) -> bool:
    return not any(event["case"] is not None for rank in ended.ranks for event in rank.events)


@contextmanager
def _folder(options: Options) -> Iterator[Path]:
    """The run's own folder; a temporary one is removed at the end, unless something there explains a failure."""
    if options.logs is not None:
        folder = options.logs.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix="smoke-", dir=folder))
        return
    folder = Path(tempfile.mkdtemp(prefix="dsgen-smoke-"))
    try:
        yield folder
    except MissingToolError:
        raise
    except Exception:
        _keep(folder)  # the message names a log in it
        raise
    finally:
        shutil.rmtree(folder / "nvme", ignore_errors=True)
        if not (folder / _KEPT).exists():
            shutil.rmtree(folder, ignore_errors=True)


_KEPT = ".keep"


def _keep(folder: Path) -> None:
    (folder / _KEPT).touch()


def _oom_kills() -> int:
    """How many processes of this control group the kernel has killed for memory so far; 0 where it doesn't say."""
    try:
        lines = _MEMORY_EVENTS.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
