"""How a worker talks to the process that started it: a request file in, lines of JSON in a file out.

stdout and stderr belong to the libraries (DeepSpeed prints to both), so results never go there. The
parent holds the other end of the worker's stdin and never writes to it: when it closes, the parent
is gone (killed even), and the worker ends itself and everything that it has started.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

_GRACE_SECONDS = 1.0


class Events:
    """Appends one JSON object per line, whole lines only, so that the parent can read along."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self.case: int | None = None
        self.phase = "start"
        self.step: int | None = None

    def write(self, event: str, **fields: object) -> None:
        """One line: what happened, in which case, when."""
        line = {"event": event, "case": self.case, "time": time.time(), **fields}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def enter(self, phase: str, step: int | None = None) -> None:
        """Says what comes next, so that a crash or a hang there has a name."""
        self.phase, self.step = phase, step
        self.write("phase", phase=phase, step=step)

    def fail(self, error: BaseException) -> NoReturn:
        """Writes what went wrong and ends the process at once: after a failed collective nothing else is safe."""
        traceback.print_exception(error)
        frames = traceback.extract_tb(error.__traceback__)
        self.write(
            "error",
            phase=self.phase,
            step=self.step,
            type=type(error).__name__,
            message=str(error),
            source=f"{frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line}" if frames else None,
            traceback="".join(traceback.format_exception(error)).splitlines()[-20:],
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def open_worker() -> tuple[dict[str, Any], Events]:
    """The request named on the command line, and where to write events; starts the watch over the parent."""
    _watch_parent()
    request: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    name = f"rank{os.environ['RANK']}" if "RANK" in os.environ else "worker"
    return request, Events(Path(request["events"]) / f"{name}.jsonl")


def _watch_parent() -> None:
    # Libraries and compilers get an empty stdin of their own; the pipe stays with the watch.
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()


def _end_with_parent(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    # ninja runs each compiler in a process group of its own and ends them on SIGTERM, not when it is killed.
    for child in _children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _children() -> list[int]:
    try:
        lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    except OSError:
        return []
    return [int(pid) for text in lists for pid in text.split()]
