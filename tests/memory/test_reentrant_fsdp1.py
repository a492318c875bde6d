"""What FSDP1 keeps of checkpointed blocks with frozen weights, by the real torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = Path(__file__).with_name("count_reentrant.py")
FEW, MANY = 4, 8


def test_each_further_block_keeps_its_input_and_under_fsdp1_reentrantly_its_gradient_too() -> None:
    kept = {(True, True): 2, (True, False): 1, (False, True): 1}
    cases = [
        {"layers": layers, "reentrant": reentrant, "sharded": sharded}
        for reentrant, sharded in kept
        for layers in (FEW, MANY)
    ]
    command = [sys.executable, "-W", "ignore", str(COUNT)]
    ran = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr
    peaks = json.loads(ran.stdout)
    slopes = [(many - few) / (MANY - FEW) for few, many in zip(peaks[::2], peaks[1::2], strict=True)]
    assert slopes == pytest.approx(list(kept.values()))
