"""Runs a script beside this file as the one rank of a DeepSpeed job on a CPU: JSON in, JSON out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


def one_rank(script: str, given: list[Any], extensions: Path, timeout: float) -> Any:
    """What the script prints, one entry for each given. ``extensions`` has the ops that DeepSpeed builds."""
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **_RANK, "DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(extensions)},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)
