"""dsgen estimate CONFIG --spec: batches, lengths and split sequences count as in a plan of the spec."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main

NODE = "hardware: {gpu: l40s, gpus_per_node: 8, host_memory: 1TiB}\n"
TRAINER = "target: {loaded_by: transformers}\n"
SPECS = {
    "tokens of a batch": f"model: smollm2-360m\n{NODE}"
    f"training: {{sequence_length: 2048, global_tokens: 3932160}}\n{TRAINER}",
    "sequences of a batch": f"model: smollm2-360m\n{NODE}training: {{global_batch: 960}}\n{TRAINER}",
    "the longest sequence": f"model: mistral-7b-v0.3\n{NODE}training: {{sequence_length: max, global_batch: 8}}\n",
    "the longest of a batch in tokens": f"model: qwen2.5-7b\n{NODE}"
    "training: {sequence_length: max, global_tokens: 1048576, attention: flash}\n",
    "split sequences": f"model: mistral-7b-v0.3\n{NODE}training: {{sequence_length: 16384, global_batch: 8}}\n"
    f"want: {{ulysses: 4}}\n{TRAINER}",
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code = main([*arguments, "--format", "json"])
    seen = capsys.readouterr()
    assert code == 0, seen.err
    return dict(json.loads(seen.out))


@pytest.mark.parametrize("name", SPECS)
def test_the_config_of_a_spec_has_the_account_of_its_plan(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The spec says micro-batch and checkpointing, which no config of a Trainer says; all else is read as it stands."""
    Path("spec.yaml").write_text(SPECS[name], encoding="utf-8")
    first = said("plan", "spec.yaml", capsys=capsys)["plan"]
    text = SPECS[name].replace("want: {ulysses: 4}\n", "")
    ulysses = ", ulysses: 4" if name == "split sequences" else ""
    wishes = f"want: {{micro_batch: {first['micro_batch']}, checkpointing: {first['checkpointing']}{ulysses}}}\n"
    Path("spec.yaml").write_text(text + wishes, encoding="utf-8")
    planned = said("plan", "spec.yaml", capsys=capsys)
    assert planned["plan"] == first
    assert main(["build", "spec.yaml", "-o", "ds_config.json"]) == 0
    capsys.readouterr()
    found = said("estimate", "ds_config.json", "--spec", "spec.yaml", capsys=capsys)
    assert found["sequence_length"] == planned["sequence_length"]
    for key in ("micro_batch", "accumulation", "global_batch", "ulysses", "data_parallel"):
        assert found["plan"][key] == planned["plan"][key], key
    assert found["ledger"] == planned["ledger"]
    assert found["step_time"] == planned["step_time"]


def test_the_longest_sequence_is_the_longest_with_which_the_config_fits(capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.yaml").write_text(SPECS["the longest sequence"], encoding="utf-8")
    config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}
    Path("ds_config.json").write_text(json.dumps(config), encoding="utf-8")
    asked = ("estimate", "ds_config.json", "--spec", "spec.yaml")
    found = said(*asked, "--checkpointing", "full", capsys=capsys)
    length = found["sequence_length"]
    assert found["fits"]
    assert 256 < length < 32768
    assert said(*asked, "--checkpointing", "full", "--sequence-length", str(length), capsys=capsys)["fits"]
    assert main([*asked, "--checkpointing", "full", "--sequence-length", str(length + 256)]) == 1
    capsys.readouterr()
    assert said(*asked, "--checkpointing", "none", capsys=capsys)["sequence_length"] < length


def test_a_flag_says_another_length_than_the_longest(capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.yaml").write_text(SPECS["the longest sequence"], encoding="utf-8")
    config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}
    Path("ds_config.json").write_text(json.dumps(config), encoding="utf-8")
    flags = ("--spec", "spec.yaml", "--sequence-length", "512")
    assert said("estimate", "ds_config.json", *flags, capsys=capsys)["sequence_length"] == 512


def test_an_empty_config_is_asked_for_its_batch_by_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ds_config.json").write_text("", encoding="utf-8")
    assert main(["estimate", "ds_config.json", "--model", "7B", "--gpu", "t4", "--world-size", "1"]) == 2
    err = capsys.readouterr().err
    assert "--micro-batch (train_micro_batch_size_per_gpu is not there)" in err
