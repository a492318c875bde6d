"""What the rules for Accelerate's files say, the installed accelerate does."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsgen.lint.accelerate_file import REFUSED

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
STAY = ("zero3_init_flag", "deepspeed_multinode_launcher", "deepspeed_moe_layer_cls_names", "deepspeed_hostfile")


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("accelerate_claims.py"))],
        input=json.dumps([*REFUSED, "mixed_precision", *STAY]),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "DS_ACCELERATOR": "cpu"},
    )
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("field", [*REFUSED, "mixed_precision"])
def test_a_field_beside_a_config_file_is_refused(field: str, said: dict[str, Any]) -> None:
    assert "deepspeed_config_file" in said["raises"][field]


@pytest.mark.parametrize("field", STAY)
def test_others_may_stay(field: str, said: dict[str, Any]) -> None:
    assert said["raises"][field] is None


def test_the_file_counts_not_the_code(said: dict[str, Any]) -> None:
    assert said["counted"] == 8


def test_a_config_without_zero_is_refused(said: dict[str, Any]) -> None:
    assert "ZeRO optimization config" in said["without_zero"]


def test_arguments_count_by_their_defaults(said: dict[str, Any]) -> None:
    """TC308: what is not written is compared as well."""
    keys = {text.split()[2].partition("=")[0] for text in said["defaults"]}
    assert keys == {
        *("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping"),
        *("optimizer.params.lr", "optimizer.params.eps", "bf16.enabled"),
    }
    assert said["stated"] == []


def test_the_flag_is_switched_off_below_stage_3(said: dict[str, Any]) -> None:
    assert said["init"] == [False, True]
