"""dsgen convert: a config in another format, the same plan where both can say it, and every loss by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main

MACHINES = ["--model", "llama-3.1-8b", "--gpu", "h100-80gb-sxm", "--world-size", "8"]
CONFIG: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8},
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "weight_decay": 0.1}},
    "scheduler": {
        "type": "WarmupCosineLR",
        "params": {"warmup_num_steps": 10, "total_num_steps": 100, "warmup_type": "linear", "cos_min_ratio": 0.1},
    },
    "tensorboard": {"enabled": True},
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(**changes: Any) -> str:
    Path("ds_config.json").write_text(json.dumps(CONFIG | changes), encoding="utf-8")
    return "ds_config.json"


def plan_of(path: str, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    code = main(["estimate", path, "--format", "json", *MACHINES, *flags])
    seen = capsys.readouterr()
    assert code in (0, 1), seen.err
    plan: dict[str, Any] = json.loads(seen.out)["plan"]
    return plan


SAME = ("zero_stage", "precision", "micro_batch", "accumulation", "offload_optimizer", "offload_parameters")


@pytest.mark.parametrize(
    "zero",
    [
        {"stage": 3},
        {"stage": 2},
        {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},
    ],
)
@pytest.mark.parametrize("checkpointing", ["none", "full", "selective", "every:2"])
def test_there_and_back_is_the_same_plan(
    zero: dict[str, Any], checkpointing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = config(zero_optimization=zero)
    flags = ["--checkpointing", checkpointing]
    assert main(["convert", source, "--to", "fsdp2", *MACHINES, *flags, "-o", "code/"]) == 0
    assert main(["convert", "code", "--to", "deepspeed", *MACHINES, "-o", "back.json"]) == 0
    capsys.readouterr()
    first, code, back = plan_of(source, capsys, *flags), plan_of("code", capsys), plan_of("back.json", capsys, *flags)
    for key in SAME:
        assert first[key] == code[key] == back[key], key
    assert code["checkpointing"] == first["checkpointing"]
    written = json.loads(Path("back.json").read_text(encoding="utf-8"))
    assert written["gradient_clipping"] == 0.5
    assert written["optimizer"]["params"]["lr"] == 3e-5
    assert written["scheduler"]["params"]["total_num_steps"] == 100
    assert written["scheduler"]["params"]["cos_min_ratio"] == 0.1


def test_what_the_other_format_can_not_say_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    zero = {"stage": 3, "reduce_bucket_size": 5e8, "overlap_comm": True}
    assert main(["convert", config(zero_optimization=zero), "--to", "fsdp2", *MACHINES, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    lost = {item["key"] for item in answer["not_carried"]}
    assert {
        "tensorboard.enabled",
        "zero_optimization.reduce_bucket_size",
        "zero_optimization.overlap_comm",
        "data_types.grad_accum_dtype",
    } <= lost
    assert answer["files"][0]["path"] == "sharding.py"


@pytest.mark.parametrize(
    ("zero", "said"),
    [
        ({"stage": 0}, "has no ZeRO stage 0"),
        ({"stage": 1}, "has no ZeRO stage 1"),
        ({"stage": 2, "offload_optimizer": {"device": "cpu"}}, "CPUOffloadPolicy moves shards"),
        (
            {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}},
            "FSDP2 offloads to host memory only",
        ),
    ],
)
def test_what_means_nothing_there_is_refused(
    zero: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", config(zero_optimization=zero), "--to", "fsdp2", *MACHINES, "-o", "code/"]) == 1
    assert said in capsys.readouterr().err
    assert not Path("code").exists()


def test_files_that_exist_stay(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sharding.py").write_text("mine", encoding="utf-8")
    command = ["convert", config(), "--to", "fsdp2", *MACHINES, "-o", "sharding.py"]
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("sharding.py").read_text(encoding="utf-8") == "mine"
    assert main([*command, "--force"]) == 0


def test_the_same_format_a_spec_and_what_is_missing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", config(), "--to", "deepspeed", *MACHINES]) == 1
    assert "is deepspeed already" in capsys.readouterr().err
    assert main(["convert", config(), "--to", "fsdp2"]) == 2
    assert "--model" in capsys.readouterr().err
    Path("spec.yaml").write_text("model: gpt2\nhardware: {gpu: t4}\n", encoding="utf-8")
    assert main(["convert", "spec.yaml", "--to", "fsdp2"]) == 2
    assert "dsgen build spec.yaml --to fsdp2" in capsys.readouterr().err
