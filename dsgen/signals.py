"""Being told to end: what stands half done is undone first."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack like Ctrl-C does, so that workers are stopped and folders removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _unwind) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unwind(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)  # the shell's code for "ended by this signal"
