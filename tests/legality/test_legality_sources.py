"""What the rows say of the libraries, held against the libraries that are installed."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dsgen.legality.optimizers import TESTED_WITH_ZERO
from dsgen.legality.rows_optimizer import ONE_BIT
from dsgen.legality.table import TABLE
from dsgen.legality.values import Row

pytestmark = pytest.mark.skipif(find_spec("deepspeed") is None, reason="deepspeed is not installed (extra: smoke)")

REFERENCE = re.compile(r"((?:deepspeed|transformers|torch|accelerate)/[\w/]+\.py):(\w+)")
# What a row says of versions long gone can't be looked up in the installed one.
PRESENT = [row for row in TABLE if row.until is None and not row.source.startswith("dsgen itself")]


@cache
def module_path(path: str) -> Path:
    package, _, rest = path.partition("/")
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed (extra: hf or smoke)")
    return Path(found.origin).parent / rest


@cache
def defined(path: Path) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(names)


@pytest.mark.parametrize("row", PRESENT, ids=lambda row: row.name)
def test_source_exists(row: Row) -> None:
    references = REFERENCE.findall(row.source)
    assert references, row.source
    for path, name in references:
        assert name in defined(module_path(path)), f"{path} has no {name}"


def source(path: str) -> str:
    return module_path(path).read_text(encoding="utf-8")


def test_words_of_the_libraries_that_rows_repeat() -> None:
    """The asserts that can't be met by parsing a config, word for word."""
    assert "incompatible with pipeline parallelism" in source("deepspeed/runtime/pipe/engine.py")
    assert "Type fp16 is not supported on your device." in source("deepspeed/runtime/engine.py")
    assert "You are using an untested ZeRO Optimizer" in source("deepspeed/runtime/engine.py")
    assert "and must be 'cpu'" in source("deepspeed/ops/adam/cpu_adam.py")
    assert "than buffer size" in source("deepspeed/runtime/swap_tensor/partitioned_param_swapper.py")
    assert "every_n_layers" in source("transformers/modeling_utils.py")


PARSE = """
import contextlib, io, json, sys
configs = json.load(sys.stdin)
with contextlib.redirect_stdout(io.StringIO()):
    from deepspeed.runtime.config import DEEPSPEED_OPTIMIZERS, DeepSpeedConfig
    from deepspeed.runtime.zero.utils import ZERO_SUPPORTED_OPTIMIZERS
    answers = []
    for config in configs:
        try:
            parsed = DeepSpeedConfig(config)
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
        else:
            zero = parsed.zero_config
            answers.append({
                "stage": int(zero.stage),
                "offload_optimizer": zero.offload_optimizer and zero.offload_optimizer.device,
                "offload_param": zero.offload_param and zero.offload_param.device,
            })
print(json.dumps({
    "answers": answers,
    "optimizers": DEEPSPEED_OPTIMIZERS,
    "tested": [kind.__name__ for kind in ZERO_SUPPORTED_OPTIMIZERS],
}))
"""

BATCH = {"train_batch_size": 1}
CONFIGS: dict[str, dict[str, Any]] = {
    "parameters below stage 3": BATCH | {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}},
    "optimizer at stage 0": BATCH | {"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}},
    "nvme below stage 3": BATCH
    | {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}},
    "nvme without path": BATCH | {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}},
    "batches that disagree": {
        "train_batch_size": 128,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4,
    },
    "MiCS": BATCH | {"zero_optimization": {"stage": 3, "mics_shard_size": 4}},
}


@pytest.fixture(scope="module")
def deepspeed_says(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One process that parses every config with the real parser; nothing is built and nothing runs."""
    ran = subprocess.run(
        [sys.executable, "-c", PARSE],
        input=json.dumps(list(CONFIGS.values())),
        cwd=tmp_path_factory.mktemp("parse"),
        env=os.environ | {"DS_ACCELERATOR": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return said | {"answers": dict(zip(CONFIGS, said["answers"], strict=True))}


def test_deepspeed_itself_lets_the_silent_ones_pass(deepspeed_says: dict[str, Any]) -> None:
    """These rows exist because the parser says nothing: were it to start refusing, they would need new words."""
    answers = deepspeed_says["answers"]
    assert answers["parameters below stage 3"] == {"stage": 2, "offload_optimizer": None, "offload_param": "cpu"}
    assert answers["optimizer at stage 0"] == {"stage": 0, "offload_optimizer": "cpu", "offload_param": None}
    assert answers["nvme below stage 3"] == {"stage": 2, "offload_optimizer": "nvme", "offload_param": None}
    assert answers["nvme without path"] == {"stage": 3, "offload_optimizer": "nvme", "offload_param": None}


def test_deepspeed_refuses_the_loud_ones(deepspeed_says: dict[str, Any]) -> None:
    answers = deepspeed_says["answers"]
    assert "128 != 2 * 4 * 1" in answers["batches that disagree"]["error"]
    assert "mics_shard_size" in answers["MiCS"]["error"]


def test_optimizers(deepspeed_says: dict[str, Any]) -> None:
    assert not ONE_BIT & {name.lower() for name in deepspeed_says["optimizers"]}
    tested = {name.lower() for name in deepspeed_says["tested"]}
    for name in TESTED_WITH_ZERO - {"muon"}:  # muon is added to the list only when it is used
        assert {name, f"fused{name}", f"deepspeedcpu{name}"} & tested, name
    assert not {"sgd", "lamb", "fusedlamb"} & tested
