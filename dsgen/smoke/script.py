"""A folder's own train.py, started by its own launcher as a person would, at its tiny size."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from dsgen.processes.session import stop
from dsgen.smoke.values import Script

LAUNCHER = "launch/torchrun.sh"
_LOSS = re.compile(r"^step \d+  loss (\S+)|'loss': '?([^,'}]+)", re.MULTILINE)
_ERROR = re.compile(r"^(?:\[rank\d+\]: ?)?(\w*(?:Error|Exception|Exit)\b.*)$", re.MULTILINE)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_POLL_SECONDS = 0.1
# A launcher for several nodes asks for their number and the first one's name: here this machine is all of them, at a
# port that torchrun chooses.
_ALONE = {"NNODES": "1", "HEAD": "localhost", "PORT": "0"}


def run_script(
    folder: Path, steps: int, processes: int, timeout: float, environment: Mapping[str, str]
) -> Script | None:
    """None where the folder has no launcher."""
    if not (folder / LAUNCHER).is_file():
        return None
    log, start = folder / "script.log", time.monotonic()
    # The launcher is found beside the interpreter, as in an environment that is activated.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    arguments = ["--size", "tiny", "--steps", str(steps), "--output", str(folder / "script-output")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", str(folder / LAUNCHER), *arguments],
            cwd=folder,
            env={**os.environ, **environment, **_ALONE, "NPROC": str(processes), "PATH": path, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while process.poll() is None and time.monotonic() - start < timeout:
            time.sleep(_POLL_SECONDS)
        code = process.poll()
    finally:
        stop([process])
    seconds = time.monotonic() - start
    return _judge(log, code, seconds, timeout)


def _judge(log: Path, code: int | None, seconds: float, timeout: float) -> Script:
    said = log.read_text("utf-8", errors="replace")
    losses = tuple(float(own or trainers) for own, trainers in _LOSS.findall(said))
    ok: bool | None = code == 0
    reason = None
    missing = _MISSING.search(said)
    if code is None:
        reason = f"took longer than {timeout:g} seconds and was stopped"
    elif code and missing:
        ok, reason = None, f"not started: {missing[1]} is not installed"
    elif code:
        errors = _ERROR.findall(said)
        reason = f"ended with code {code}" + (f": {errors[0]}" if errors else "")
    elif not all(math.isfinite(loss) for loss in losses):
        ok, reason = False, f"the loss is not finite: {losses}"
    return Script(launcher=LAUNCHER, ok=ok, losses=losses, seconds=seconds, reason=reason, log=str(log))
