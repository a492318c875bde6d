"""One process group: as many ranks as asked, all jobs in turn, until the end or the first failure."""

import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsgen.processes.events import EventFile
from dsgen.processes.request import write_request
from dsgen.processes.session import start, stop
from dsgen.smoke.probe import device_environment
from dsgen.smoke.values import Machine, Options

_POLL_SECONDS = 0.05
# A failing rank takes its neighbours with it; a moment later all have said what they have to say.
_LAST_WORDS_SECONDS = 1.0
_LEAVE_SECONDS = 20.0


@dataclass(frozen=True)
class Ended:
    """What a group left behind."""

    ranks: tuple[EventFile, ...]
    exit_codes: tuple[int | None, ...]
    """At the moment that the group was judged; None: still running, and stopped by us afterwards."""
    finished: int
    """Jobs that every rank has finished."""
    timed_out: bool
    logs: tuple[Path, ...]


def run_group(
    jobs: Sequence[Mapping[str, object]],
    name: str,
    folder: Path,
    extensions: Path,
    machine: Machine,
    options: Options,
    processes: int,
) -> Ended:
    """Starts the ranks, watches them, and leaves none behind."""
    request = write_request(
        folder,
        name,
        {
            "jobs": jobs,
            "device": machine.device,
            "deepspeed": any("config" in job for job in jobs),
            "rendezvous": str(folder / name / "rendezvous"),
            "timeout": options.timeout,
        },
    )
    environment = environment_of(machine, options, processes, extensions)
    logs = tuple(folder / f"{name}-rank{rank}.log" for rank in range(processes))
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for rank, log in enumerate(logs):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            workers.append(start("ranks", request, folder, log, {**environment, **own}))
        ranks = tuple(EventFile(folder / name / f"rank{rank}.jsonl") for rank in range(processes))
        return _watch(workers, ranks, logs, len(jobs), options.timeout)
    finally:
        stop(workers)


def _watch(
    workers: "Sequence[subprocess.Popen[bytes]]",
    ranks: tuple[EventFile, ...],
    logs: tuple[Path, ...],
    jobs: int,
    timeout: float,
) -> Ended:
    finished, deadline, judge_at = 0, time.monotonic() + timeout, None
    while True:
        codes = tuple(worker.poll() for worker in workers)
        for rank in ranks:
            rank.read()
        done = _finished(ranks)
        if done > finished:
            finished = done
            deadline = time.monotonic() + (timeout if finished < jobs else _LEAVE_SECONDS)
        now = time.monotonic()
        if all(code is not None for code in codes):
            break
        if judge_at is None and any(code not in (None, 0) for code in codes):
            judge_at = now + _LAST_WORDS_SECONDS
        if now > deadline or (judge_at is not None and now > judge_at):
            break
        time.sleep(_POLL_SECONDS)
    failed = any(code not in (None, 0) for code in codes)
    return Ended(ranks, codes, finished, timed_out=finished < jobs and not failed and None in codes, logs=logs)


def _finished(ranks: Sequence[EventFile]) -> int:
    """Jobs that every rank has finished; they run in order."""
    return min(len([event for event in rank.events if event["event"] == "done"]) for rank in ranks)


def environment_of(machine: Machine, options: Options, processes: int, extensions: Path) -> dict[str, str]:
    """What a launcher sets, and what keeps processes on one machine out of each other's way."""
    environment = {
        **device_environment(options, machine),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        # DeepSpeed wants one to be named; the ranks meet through a file.
        "MASTER_PORT": str(_free_port()),
        "TORCH_EXTENSIONS_DIR": str(extensions),
    }
    if "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // processes))
    # Gloo resolves the host's name, which on laptops and in containers often leads nowhere.
    if "GLOO_SOCKET_IFNAME" not in os.environ and Path("/sys/class/net/lo").exists():
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    return environment


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
