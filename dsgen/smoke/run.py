"""Runs configs: probe the machine, fit each config to it, build what is missing, train, judge."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dsgen.errors import MissingToolError
from dsgen.smoke.adapt import Adapted, adapt
from dsgen.smoke.group import Ended, run_group
from dsgen.smoke.judge import verdict, why_it_ended
from dsgen.smoke.locks import Say, clear_stale, held
from dsgen.smoke.ops import needed, prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.session import end_on_signals
from dsgen.smoke.values import Case, Machine, Options, Report, Run

_CPU_PROCESSES = 2
_MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")


def smoke(cases: Sequence[Case], options: Options, say: Say) -> Report:
    """Runs every case for a few steps; one that fails does not take the others with it."""
    with end_on_signals(), _folder(options) as folder:
        uses_nvme = any('"nvme"' in json.dumps(case.config) for case in cases)
        machine = probe(options, uses_nvme, folder)
        processes = options.processes or machine.devices or _CPU_PROCESSES
        adapted = [adapt(case, machine, options, processes, folder) for case in cases]
        ops = list(dict.fromkeys(op for one in adapted for op in needed(one.config, machine)))
        extensions = prepare(ops, machine, options, folder, say)
        requests = [_request(i, cases[i], adapted[i], options, folder) for i in range(len(cases))]
        runs = _run_all(cases, adapted, requests, folder, extensions, machine, options, processes, say)
        report = Report(machine=machine, runs=tuple(runs))
        if not all(run.ok for run in report.runs):
            _keep(folder)
    return report


def _run_all(
    cases: Sequence[Case],
    adapted: Sequence[Adapted],
    requests: Sequence[dict[str, object]],
    folder: Path,
    extensions: Path,
    machine: Machine,
    options: Options,
    processes: int,
    say: Say,
) -> list[Run]:
    """Cases share a process group until one fails; a new group goes on with those after it."""
    runs: list[Run] = []
    group = failed_starts = 0
    while len(runs) < len(cases):
        left = range(len(runs), len(cases))
        say(f"starting {processes} processes on {machine.device} for {_names([cases[i] for i in left])}")
        if group:
            # Ranks that were stopped may have been loading an op.
            with held(extensions, options.build_timeout, say):
                clear_stale(extensions, options.build_timeout, say)
        kills = _oom_kills()
        ended = run_group([requests[i] for i in left], f"group{group}", folder, extensions, machine, options, processes)
        group += 1
        for i in left[: ended.finished]:
            runs.append(verdict(cases[i], adapted[i], machine, ended, i - left[0], None))
        if len(runs) == len(cases):
            break
        if _never_started(ended) and not ended.timed_out and failed_starts == 0:
            failed_starts += 1
            say("the processes did not find each other; trying once more")
            continue
        failure = why_it_ended(ended, options.timeout, _oom_kills() - kills)
        # What keeps a group from starting keeps the next one from it, too.
        blamed = left[ended.finished :] if _never_started(ended) else left[ended.finished : ended.finished + 1]
        runs += [verdict(cases[i], adapted[i], machine, ended, i - left[0], failure) for i in blamed]
    return runs


def _never_started(ended: Ended) -> bool:
    return not any(event["case"] is not None for rank in ended.ranks for event in rank.events)


def _names(cases: Sequence[Case]) -> str:
    names = ", ".join(case.name for case in cases[:3])
    return names if len(cases) <= 3 else f"{names} and {len(cases) - 3} more"


def _request(index: int, case: Case, adapted: Adapted, options: Options, folder: Path) -> dict[str, object]:
    config, model = folder / f"config{index}.json", folder / f"model{index}.py"
    # DeepSpeed reads the file itself, as it would from a training script.
    config.write_text(json.dumps(adapted.config, indent=2), encoding="utf-8")
    model.write_text(case.decoder, encoding="utf-8")
    return {
        "config": str(config),
        "model": str(model),
        "checkpointing": [case.checkpointing.kind, case.checkpointing.every],
        "optimizer": adapted.optimizer,
        "steps": options.steps,
        "seed": options.seed,
    }


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
