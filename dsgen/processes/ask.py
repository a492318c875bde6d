"""One worker, one question: starts it, waits within a limit, returns its events."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from dsgen.errors import DsgenError
from dsgen.processes.events import Event, EventFile
from dsgen.processes.request import write_request
from dsgen.processes.session import start, stop

_POLL_SECONDS = 0.05


def ask(
    worker: str,
    request: Mapping[str, object],
    folder: Path,
    timeout: float,
    environment: Mapping[str, str],
    on_event: Callable[[Event], None] | None = None,
) -> list[Event]:
    """Events of a worker that has ended by itself; one that outlives its limit is stopped, and that is an error."""
    file, log = write_request(folder, worker, request), folder / f"{worker}.log"
    events = EventFile(folder / worker / "worker.jsonl")
    process = start(worker, file, folder, log, environment)
    try:
        deadline = time.monotonic() + timeout
        while True:
            ended = process.poll() is not None
            for event in events.read():
                if on_event is not None:
                    on_event(event)
            if ended:
                break
            if time.monotonic() > deadline:
                phase = events.last("phase")
                raise DsgenError.at(
                    f"{phase['phase'] if phase else worker} took longer than {timeout:g} seconds and was stopped",
                    help=f"its output is in {log}",
                )
            time.sleep(_POLL_SECONDS)
    finally:
        stop([process])
    if not events.events:
        raise DsgenError.at(
            f"the worker {worker} ended with code {process.returncode} before it could say anything",
            help=f"its output is in {log}",
        )
    return events.events
