"""Locks of op builds: a dead holder's is removed, a living one's is waited for."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dsgen.errors import DsgenError
from dsgen.smoke.locks import clear_stale, held


def plant(folder: Path) -> Path:
    op = folder / "deepspeed_shm_comm"
    op.mkdir(parents=True)
    lock = op / "lock"
    lock.touch()
    return lock


def test_a_planted_lock_is_removed_and_said(tmp_path: Path) -> None:
    lock, said = plant(tmp_path), []
    assert clear_stale(tmp_path, 5, said.append) == [lock]
    assert not lock.exists()
    assert str(lock) in said[0]


def test_nothing_to_clear(tmp_path: Path) -> None:
    said: list[str] = []
    assert clear_stale(tmp_path, 5, said.append) == []
    assert said == []


def test_a_living_holder_is_waited_for(tmp_path: Path) -> None:
    """torch's FileBaton keeps its file open for as long as it builds, and removes it at the end."""
    lock, said = plant(tmp_path), []
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, time; fd = os.open(sys.argv[1], os.O_RDONLY); print(1, flush=True);"
            "time.sleep(1); os.close(fd); os.remove(sys.argv[1])",
            str(lock),
        ],
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.read(1)
        start = time.monotonic()
        assert clear_stale(tmp_path, 30, said.append) == []
        assert time.monotonic() - start > 0.5
    assert "waiting" in said[0]


def test_waiting_has_an_end(tmp_path: Path) -> None:
    lock = plant(tmp_path)
    with lock.open(), pytest.raises(DsgenError, match=r"more than 0\.5 seconds"):
        clear_stale(tmp_path, 0.5, print)
    assert lock.exists()


def test_two_take_turns(tmp_path: Path) -> None:
    order: list[str] = []
    inside = threading.Event()

    def first() -> None:
        with held(tmp_path, 10, order.append):
            inside.set()
            time.sleep(0.5)
            order.append("first done")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(10)
    with held(tmp_path, 10, order.append):
        order.append("second in")
    thread.join()
    assert order[0].startswith("waiting for another dsgen")
    assert order[1:] == ["first done", "second in"]


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from dsgen.smoke.locks import held\n"
        "with held(Path(sys.argv[1]), 5, print): print('in', flush=True); time.sleep(300)"
    )
    root = str(Path(__file__).resolve().parents[2])
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root}
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.read(2)
        holder.kill()
    with held(tmp_path, 2, print):
        pass
