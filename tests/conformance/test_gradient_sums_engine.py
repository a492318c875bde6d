"""In which type DeepSpeed adds up the gradients of many micro-batches, by what comes out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsgen.smoke.ops import prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.values import Options

WORKER = Path(__file__).with_name("gradient_sums.py")
EXACT, ROUNDED = 1 + 63 / 512, 1.0
# Stage 1 reduces the sum, in bf16, rather than each micro-batch: rounded once, to 7 binary digits.
ROUNDED_ONCE = 1.125

# stage, grad_accum_dtype, offload -> the sum, and what steps
EXPECTED: dict[tuple[int, str | None, str], tuple[float, str]] = {
    (1, None, "none"): (ROUNDED, "DeepSpeedZeroOptimizer"),
    (1, "fp32", "none"): (ROUNDED_ONCE, "BF16_Optimizer"),
    (1, "fp32", "cpu"): (ROUNDED_ONCE, "DeepSpeedZeroOptimizer"),
    (2, None, "none"): (ROUNDED, "DeepSpeedZeroOptimizer"),
    (2, "bf16", "none"): (ROUNDED, "DeepSpeedZeroOptimizer"),
    (2, "fp32", "none"): (EXACT, "DeepSpeedZeroOptimizer"),
    (2, "fp32", "cpu"): (EXACT, "DeepSpeedZeroOptimizer"),
    (3, None, "none"): (ROUNDED, "DeepSpeedZeroOptimizer_Stage3"),
    (3, "fp32", "none"): (EXACT, "DeepSpeedZeroOptimizer_Stage3"),
    (3, "fp32", "cpu"): (EXACT, "DeepSpeedZeroOptimizer_Stage3"),
}
UNSUPPORTED = (0, "fp32", "none")


def config(stage: int, dtype: str | None, offload: str) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": stage, "reduce_bucket_size": 1000}
    if offload == "cpu":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    written: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 64,
        "gradient_clipping": 0.0,
        "bf16": {"enabled": True},
        "optimizer": {"type": "SGD", "params": {"lr": 1.0}},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": zero,
    }
    return written | ({"data_types": {"grad_accum_dtype": dtype}} if dtype else {})


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str | None, str], Any]:
    folder = tmp_path_factory.mktemp("sums")
    options = Options(device="cpu")
    extensions = prepare(["deepspeed_shm_comm"], probe(options, False, False, folder), options, folder, print)
    rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    keys = [*EXPECTED, UNSUPPORTED]
    ran = subprocess.run(
        [sys.executable, str(WORKER)],
        input=json.dumps([config(*key) for key in keys]),
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env={**os.environ, **rank, "DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(extensions)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return dict(zip(keys, json.loads(ran.stdout), strict=True))


@pytest.mark.parametrize("key", EXPECTED, ids=str)
def test_sums(key: tuple[int, str | None, str], said: dict[tuple[int, str | None, str], Any]) -> None:
    assert said[key] == list(EXPECTED[key])


def test_stage_0_adds_in_the_compute_type_only(said: dict[tuple[int, str | None, str], Any]) -> None:
    assert "NotImplementedError: unsupported mix" in said[UNSUPPORTED]
