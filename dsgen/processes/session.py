"""Worker processes: started in a session of their own, ended with everything that they started."""

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def start(
    worker: str, request: Path, folder: Path, log: Path, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Starts ``dsgen.workers.<worker>`` in ``folder``, where no file of the user's can shadow a library."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", f"dsgen.workers.{worker}", str(request)],
            cwd=folder,
            env={**_environment(), **environment},
            # Held open until the worker ends: its end is how a worker learns that dsgen itself was killed.
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    # ninja lies beside the interpreter; a virtual environment that is not activated is not on PATH.
    scripts = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), scripts])
    installed = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    if _PACKAGE_PARENT not in installed:
        paths = [environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []
        environment["PYTHONPATH"] = os.pathsep.join([*paths, str(_PACKAGE_PARENT)])
    environment["PYTHONUNBUFFERED"] = "1"  # what a killed process printed last is what one wants to read
    environment["PYTHONFAULTHANDLER"] = "1"
    return environment


def tool(name: str) -> str | None:
    """The program of that name that workers will find; None if there is none."""
    import shutil

    return shutil.which(name, path=_environment()["PATH"])


def stop(workers: "Sequence[subprocess.Popen[bytes]]", grace: float = _GRACE_SECONDS) -> None:
    """Ends the workers and every process in their sessions: asked first, then killed."""
    sessions = [worker.pid for worker in workers]
    _signal(sessions, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and _alive(workers, sessions):
        time.sleep(_POLL_SECONDS)
    _signal(sessions, signal.SIGKILL)
    for worker in workers:
        worker.wait()
        if worker.stdin:
            worker.stdin.close()


def _alive(workers: "Sequence[subprocess.Popen[bytes]]", sessions: Sequence[int]) -> bool:
    codes = [worker.poll() for worker in workers]  # every one of them is polled, and so reaped
    return None in codes or bool(_members(sessions))


def _signal(sessions: Sequence[int], number: signal.Signals) -> None:
    # A compiler under ninja has a process group of its own, but is still of the session.
    for process in _members(sessions):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    for session in sessions:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, number)


def _members(sessions: Sequence[int]) -> list[int]:
    """Living processes of these sessions (Linux; elsewhere only their process groups can be reached)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # proc(5): pid (name) state ppid pgrp session ...; the name may hold spaces and brackets.
            state, _, _, session = path.read_text(errors="replace").rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # ended meanwhile
        if int(session) in sessions and state != "Z":
            found.append(int(path.parent.name))
    return found
