"""What the tests of smoke share: configs, a way to run the command, and a way to find what it left behind."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsgen.smoke.values import Case, Machine

ROOT = Path(__file__).resolve().parents[2]
MARK = "DSGEN_TEST_MARK"

CPU = Machine(
    device="cpu",
    devices=0,
    device_name=None,
    fp16=False,
    libaio=False,
    python="3.11",
    torch="2.13.0",
    deepspeed="0.19.8",
    libraries=("torch", "deepspeed"),
)

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc (Linux)")


def config(stage: int, **more: Any) -> dict[str, Any]:
    """A small config of that stage with AdamW and accumulation; ``zero`` adds to its ZeRO section."""
    zero = {"stage": stage, **more.pop("zero", {})}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        **more,
    }


def case(content: Mapping[str, Any], **more: Any) -> Case:
    return Case(name="ds_config.json", config=content, decoder="", family="llama", **more)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        assert self.out, self.err
        return json.loads(self.out)


def dsgen(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 400) -> Ran:
    """``python -m dsgen smoke ...`` from a foreign folder, as from a bare clone."""
    ran = subprocess.run(
        [sys.executable, "-m", "dsgen", "smoke", *arguments],
        cwd=cwd,
        env=environment({"TMPDIR": str(cwd), **(env or {})}),  # where folders of failed runs are kept
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    paths = [path for path in ((more or {}).get("PYTHONPATH"), str(ROOT), os.environ.get("PYTHONPATH")) if path]
    return {**os.environ, **(more or {}), "PYTHONPATH": os.pathsep.join(paths)}


def mark() -> str:
    """A value for the environment that finds every descendant again."""
    return uuid.uuid4().hex


def left_behind(value: str, within: float = 10.0) -> list[str]:
    """Command lines of living processes that carry the mark, after giving them some seconds to go."""
    deadline = time.monotonic() + within
    while (found := _marked(value)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _marked(value: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={value}".encode() in path.read_bytes():
                command = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{path.parent.name}: {command}")
        except OSError:
            continue
    return found
