"""dsgen estimate of accelerate's own configs: DeepSpeed by them, FSDP, plain data parallelism."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsgen.cli import main


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ACCELERATE: dict[str, Any] = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "DEEPSPEED",
    "mixed_precision": "bf16",
    "num_machines": 2,
    "num_processes": 8,
    "deepspeed_config": {"zero_stage": 2, "gradient_accumulation_steps": 4, "offload_optimizer_device": "cpu"},
}


def of_accelerate(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    Path("accelerate.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    flags = ["--model", "llama-2-7b", "--gpu", "a100-80gb-sxm", "--micro-batch", "1", "--checkpointing", "full"]
    code = main(["estimate", "accelerate.yaml", "--format", "json", *flags])
    seen = capsys.readouterr()
    return code, json.loads(seen.out) if seen.out else {}, seen.err


@pytest.mark.parametrize(("word", "precision"), [("bf16", "bf16"), ("fp16", "fp16"), ("no", "fp32")])
def test_accelerates_config_is_the_one_that_it_makes_for_deepspeed(
    word: str, precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """accelerate/utils/dataclasses.py:DeepSpeedPlugin; processes and nodes stand in the same file."""
    _, found, err = of_accelerate(ACCELERATE | {"mixed_precision": word}, capsys)
    plan = found["plan"]
    assert (plan["zero_stage"], plan["offload_optimizer"], plan["accumulation"]) == (2, "cpu", 4), err
    assert (plan["world_size"], plan["gpus_per_node"], plan["precision"]) == (8, 4, precision)


def test_a_config_that_accelerate_names_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ds.json").write_text(json.dumps({"zero_optimization": {"stage": 3}}), encoding="utf-8")
    named = ACCELERATE | {"deepspeed_config": {"deepspeed_config_file": "ds.json"}}
    _, found, err = of_accelerate(named, capsys)
    assert found["plan"]["zero_stage"] == 3, err
    Path("ds.json").unlink()
    code, _, err = of_accelerate(named, capsys)
    assert code == 2
    assert "ds.json, which is not there" in err


@pytest.mark.parametrize("name", ["accelerate.yaml", "other.yaml"])
def test_a_named_config_that_is_accelerates_own_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Itself, or one that names it in turn: nothing is read round and round."""
    Path("other.yaml").write_text(
        yaml.safe_dump(ACCELERATE | {"deepspeed_config": {"deepspeed_config_file": "accelerate.yaml"}}), "utf-8"
    )
    code, found, err = of_accelerate(ACCELERATE | {"deepspeed_config": {"deepspeed_config_file": name}}, capsys)
    assert (code, found) == (2, {})
    assert f"accelerate.yaml: names the DeepSpeed config {name}, but that is one of accelerate itself" in err
    assert "help: name the file with zero_optimization in it" in err


@pytest.mark.parametrize(
    ("section", "stage", "group", "device"),
    [
        ({"fsdp_sharding_strategy": "FULL_SHARD"}, 3, None, "none"),
        ({"fsdp_sharding_strategy": 2}, 2, None, "none"),
        ({"fsdp_sharding_strategy": "HYBRID_SHARD"}, 3, 4, "none"),
        ({"fsdp_version": 2, "fsdp_reshard_after_forward": True, "fsdp_offload_params": True}, 3, None, "cpu"),
        ({"fsdp_version": 2, "fsdp_reshard_after_forward": False}, 2, None, "none"),
    ],
)
def test_fsdp_by_accelerate_is_accounted_for(
    section: dict[str, Any], stage: int, group: int | None, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch/distributed/fsdp/api.py:ShardingStrategy; a hybrid shards within the four GPUs of a node."""
    config = {key: value for key, value in ACCELERATE.items() if key != "deepspeed_config"}
    _, found, err = of_accelerate(config | {"distributed_type": "FSDP", "fsdp_config": section}, capsys)
    plan = found["plan"]
    assert (plan["zero_stage"], plan["shard_group"]) == (stage, group), err
    assert plan["offload_parameters"] == device
    assert plan["gradient_precision"] == "bf16"


def test_plain_data_parallelism_by_accelerate(capsys: pytest.CaptureFixture[str]) -> None:
    config = {key: value for key, value in ACCELERATE.items() if key != "deepspeed_config"}
    _, found, _ = of_accelerate(config | {"distributed_type": "MULTI_GPU"}, capsys)
    assert (found["plan"]["zero_stage"], found["plan"]["world_size"]) == (0, 8)
    code, _, err = of_accelerate(config | {"distributed_type": "TPU"}, capsys)
    assert code == 2
    assert "TPU" in err
