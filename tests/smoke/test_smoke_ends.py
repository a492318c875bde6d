"""Whatever happens, smoke ends in time and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from smoke_helpers import MARK, config, dsgen, environment, left_behind, mark, needs_proc

from dsgen.errors import DsgenError
from dsgen.processes import session
from dsgen.processes.ask import ask
from dsgen.smoke import locks

# A torch whose import starts a process in a group of its own (as ninja does with compilers) and then hangs.
HANGING_TORCH = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], process_group=0)
time.sleep(300)
"""


def write_config(folder: Path) -> None:
    (folder / "ds_config.json").write_text(json.dumps(config(1)))


def hanging_torch(folder: Path) -> str:
    package = folder / "hanging" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(HANGING_TORCH)
    return str(package.parent)


@needs_proc
def test_the_time_limit_ends_a_worker_and_its_children(tmp_path: Path) -> None:
    value = mark()
    more = {MARK: value, "PYTHONPATH": hanging_torch(tmp_path) + os.pathsep + environment()["PYTHONPATH"]}
    with pytest.raises(DsgenError, match="import torch took longer than 2 seconds"):
        ask("probe", {"device": "cpu", "libaio": False}, tmp_path, 2.0, more)
    assert left_behind(value, within=0.5) == []


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_dsgen(tmp_path: Path, number: signal.Signals) -> None:
    write_config(tmp_path)
    value = mark()
    parent = subprocess.Popen(
        [sys.executable, "-m", "dsgen", "smoke", "ds_config.json"],
        cwd=tmp_path,
        env=environment({MARK: value, "PYTHONPATH": hanging_torch(tmp_path), "TMPDIR": str(tmp_path)}),
        stderr=subprocess.PIPE,
    )
    with parent:
        deadline = time.monotonic() + 60
        # dsgen, the worker, and the child of its torch
        while len(left_behind(value, within=0)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        parent.send_signal(number)
        parent.wait(timeout=30)
    assert left_behind(value) == []
    if number != signal.SIGKILL:
        assert parent.returncode in (128 + number, 130)
        assert list(tmp_path.glob("dsgen-smoke-*")) == []


@needs_proc
def test_the_time_limit_of_a_run(tmp_path: Path) -> None:
    write_config(tmp_path)
    value = mark()
    # No machine imports torch in a tenth of a second.
    ran = dsgen("ds_config.json", "--timeout", "0.1", "--format", "json", cwd=tmp_path, env={MARK: value})
    run = ran.json["runs"][0]
    assert (ran.code, run["outcome"]) == (1, "timed out")
    assert run["error"]["reason"].startswith("took longer than 0.1 seconds and was stopped: rank 0 in ")
    assert left_behind(value) == []


@needs_proc
def test_a_killed_build_blocks_nobody(tmp_path: Path) -> None:
    """The build is killed half-way: its compilers end, dsgen says so, and the lock that torch leaves is found stale."""
    write_config(tmp_path)
    value, extensions = mark(), tmp_path / "extensions"
    lock = extensions / "deepspeed_shm_comm" / "lock"
    parent = subprocess.Popen(
        [sys.executable, "-m", "dsgen", "smoke", "ds_config.json"],
        cwd=tmp_path,
        env=environment({MARK: value, "TORCH_EXTENSIONS_DIR": str(extensions), "TMPDIR": str(tmp_path)}),
        stderr=subprocess.PIPE,
        text=True,
    )
    with parent:
        deadline = time.monotonic() + 120
        alive: list[str] = []
        while not any("cc1plus" in line for line in alive):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            alive = left_behind(value, within=0)
        worker = next(line for line in alive if "-m dsgen.workers.build_ops" in line)
        os.kill(int(worker.partition(":")[0]), signal.SIGKILL)
        _, said = parent.communicate(timeout=30)
    assert parent.returncode == 2
    assert "building op deepspeed_shm_comm" in said
    assert "the process was killed in: build deepspeed_shm_comm" in said
    assert left_behind(value) == []
    assert lock.exists()
    cleared: list[str] = []
    with locks.held(extensions, 5, cleared.append):
        assert locks.clear_stale(extensions, 5, cleared.append) == [lock]
    assert "left by a build that was killed" in cleared[0]


def test_stop_reaches_what_ignores_being_asked(tmp_path: Path) -> None:
    stubborn = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(300)",
        ],
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    with stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.read(1)
        session.stop([stubborn], grace=0.3)
        assert stubborn.returncode == -signal.SIGKILL
