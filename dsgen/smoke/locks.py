"""Locks around the folder of built ops.

Two kinds. Ours is an flock, which the kernel frees when its holder dies. torch's (FileBaton) is a file named
``lock`` that its holder creates and removes: a holder that is killed leaves it, and everyone after waits
for ever, in silence. So before anything loads an op, a lock that no process holds is removed.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dsgen.errors import DsgenError

Say = Callable[[str], None]

_OURS = ".dsgen.lock"
_POLL_SECONDS = 0.2


@contextlib.contextmanager
def held(folder: Path, timeout: float, say: Say) -> Iterator[None]:
    """Our lock on the folder: one dsgen builds at a time, the others wait and then find everything built."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _OURS).open("w") as file:
        deadline, said = time.monotonic() + timeout, False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not said:
                    say(f"waiting for another dsgen that builds in {folder}")
                    said = True
                if time.monotonic() > deadline:
                    raise DsgenError.at(
                        f"another dsgen has been building in {folder} for more than {timeout:g} seconds",
                        help="end it, or give --build-timeout more",
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield


def clear_stale(folder: Path, timeout: float, say: Say) -> list[Path]:
    """Removes torch's locks that no living process holds; waits for those that one does. Returns the removed."""
    removed = []
    for lock in sorted(folder.glob("*/lock")):
        deadline, said = time.monotonic() + timeout, False
        while lock.exists() and _in_use(lock, timeout):
            if not said:
                say(f"waiting for another process that builds {lock.parent.name} ({lock})")
                said = True
            if time.monotonic() > deadline:
                raise DsgenError.at(
                    f"another process has held {lock} for more than {timeout:g} seconds",
                    help="end that process, or give --build-timeout more",
                )
            time.sleep(_POLL_SECONDS)
        with contextlib.suppress(FileNotFoundError):
            lock.unlink()
            say(f"removed {lock}: left by a build that was killed, it would have blocked every later one")
            removed.append(lock)
    return removed


def _in_use(lock: Path, timeout: float) -> bool:
    """Whether a process still holds the lock: torch keeps the file open for as long as it does."""
    try:
        status = lock.stat()
        if status.st_uid == os.getuid() and Path("/proc/self/fd").is_dir():
            return _is_open((status.st_dev, status.st_ino))
        # Another user's processes (or, without /proc, all of them) can't be looked into: go by age.
        return time.time() - status.st_mtime < timeout
    except FileNotFoundError:
        return False


def _is_open(file: tuple[int, int]) -> bool:
    for link in Path("/proc").glob("[0-9]*/fd/[0-9]*"):
        try:
            status = link.stat()
        except OSError:
            continue  # closed meanwhile, or not ours to see
        if (status.st_dev, status.st_ino) == file:
            return True
    return False
