"""dsgen estimate: the account of a config that exists, what it has to be told, what it says where it doesn't fit."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsgen.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/ds_config.json"))
MACHINES = ["--model", "llama-2-7b", "--gpu", "a100-80gb-sxm", "--world-size", "8"]
CONFIG: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3},
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(config: Any, *flags: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON, and what was said."""
    Path("ds_config.json").write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    try:
        code = main(["estimate", "ds_config.json", "--format", "json", *flags])
    except SystemExit as ended:  # argparse
        code = int(str(ended.code))
    seen = capsys.readouterr()
    return code, json.loads(seen.out) if seen.out else {}, seen.err


@pytest.mark.parametrize("folder", EXAMPLES, ids=[folder.name for folder in EXAMPLES])
def test_the_config_of_a_plan_has_the_ledger_of_that_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read back from the file that was written of it, every byte and second is the same."""
    assert main(["plan", str(folder / "spec.yaml"), "--format", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    plan = planned["plan"]
    flags = ["--spec", str(folder / "spec.yaml"), "--checkpointing", plan["checkpointing"].replace(" ", ":")]
    if yaml.safe_load((folder / "spec.yaml").read_text(encoding="utf-8")).get("target", {}).get("loaded_by"):
        flags += ["--micro-batch", str(plan["micro_batch"])]
    assert main(["build", str(folder / "spec.yaml"), "-o", "written.json"]) == 0
    capsys.readouterr()
    config = Path("written.json").read_text(encoding="utf-8")
    code, found, err = run(config, *flags, capsys=capsys)
    assert code == 0, err
    assert found["ledger"] == planned["ledger"]
    assert found["step_time"] == planned["step_time"]
    assert found["fits"] is planned["fits"]


def test_what_is_missing_is_asked_for_by_name_in_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run({"zero_optimization": {"stage": 2}}, capsys=capsys)
    assert code == 2
    assert err.count("dsgen:") == 1
    for flag in ("--model", "--gpu", "--world-size", "--micro-batch", "--spec"):
        assert flag in err


def test_a_micro_batch_that_nothing_gives_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(CONFIG | {"train_micro_batch_size_per_gpu": "auto"}, *MACHINES, capsys=capsys)
    assert code == 2
    assert "--micro-batch (train_micro_batch_size_per_gpu is auto)" in err
    assert "--model" not in err


@pytest.mark.parametrize(
    ("sizes", "micro", "accumulation"),
    [
        # deepspeed/runtime/config.py:_set_batch_related_parameters, by hand for 8 ranks
        ({"train_batch_size": 64}, 8, 1),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2}, 2, 4),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 2}, 4, 2),
        ({"train_micro_batch_size_per_gpu": 2}, 2, 1),
        ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}, 2, 3),
    ],
)
def test_batch_sizes_are_completed_as_deepspeed_does(
    sizes: dict[str, int], micro: int, accumulation: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {key: value for key, value in CONFIG.items() if "batch" not in key and "accum" not in key} | sizes
    _, found, _ = run(config, *MACHINES, capsys=capsys)
    assert (found["plan"]["micro_batch"], found["plan"]["accumulation"]) == (micro, accumulation)
    assert found["plan"]["global_batch"] == micro * accumulation * 8


def test_batch_sizes_that_do_not_multiply_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(CONFIG | {"train_batch_size": 48}, *MACHINES, capsys=capsys)
    assert code == 1
    assert "ds_config.json:1:" in err
    assert "48 is not micro-batch 1 x accumulation 4 x 8 data-parallel ranks = 32" in err
    assert "it is right for 12 data-parallel ranks" in err


def test_what_does_not_fit_is_said_with_the_part_that_overflowed(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model", "llama-2-70b", "--gpu", "a100-80gb-sxm", "--world-size", "8"]
    code, found, err = run(CONFIG, *flags, capsys=capsys)
    assert code == 1
    assert found["fits"] is False
    assert "this does not fit" in err
    assert "largest part" in err


def test_sizes_that_the_file_does_not_state_are_deepspeeds_own(capsys: pytest.CaptureFixture[str]) -> None:
    """deepspeed/runtime/zero/config.py: the defaults, not what dsgen would have written."""
    _, found, _ = run(CONFIG, *MACHINES, capsys=capsys)
    assert found["plan"]["buckets"]["reduce"] == 500_000_000
    assert found["plan"]["buckets"]["sub_group_size"] == 10**9
    assert found["plan"]["buckets"]["max_live_parameters"] == 10**9


def test_auto_sizes_are_those_that_transformers_writes(capsys: pytest.CaptureFixture[str]) -> None:
    """transformers/integrations/deepspeed.py:trainer_config_finalize, for a model 4096 wide."""
    zero = {
        "stage": 3,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
    }
    _, found, _ = run(CONFIG | {"zero_optimization": zero}, *MACHINES, capsys=capsys)
    buckets = found["plan"]["buckets"]
    assert buckets["reduce"] == 4096 * 4096
    assert buckets["prefetch"] == int(0.9 * 4096 * 4096)
    assert buckets["persistence_threshold"] == 40960
    assert any("taken to be loaded by transformers" in note for note in found["notes"])


def test_what_the_account_leaves_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}
    _, found, _ = run(CONFIG | {"zero_optimization": zero}, *MACHINES, capsys=capsys)
    assert any("offload_optimizer.ratio is not in this account" in note for note in found["notes"])
    assert any("--checkpointing full says otherwise" in note for note in found["notes"])


def test_what_the_libraries_refuse_is_refused_after_its_account(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model", "llama-2-7b", "--gpu", "v100-32gb-sxm", "--world-size", "8"]
    code, found, err = run(CONFIG, *flags, capsys=capsys)
    assert code == 1
    assert found["plan"]["precision"] == "bf16"
    assert "no native bf16" in err


def test_the_version_decides_what_a_key_is(capsys: pytest.CaptureFixture[str]) -> None:
    """pin_memory became true with 0.19.5: page-locked buffers are rounded up on the host."""
    config = CONFIG | {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}
    for version, pinned in (("0.18.0", False), ("0.19.8", True)):
        _, found, _ = run(config, *MACHINES, "--deepspeed", version, capsys=capsys)
        assert found["plan"]["swap"]["pin_memory"] is pinned


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--model", "lama-2-7b"], "--model: no model is called"),
        (["--gpu", "a1000"], "--gpu: unknown GPU"),
        (["--attention", "flsh"], "--attention: "),
        (["--checkpointing", "every:x"], "--checkpointing: "),
        (["--host-memory", "12"], "--host-memory: "),
        (["--method", "prefix"], "--method: "),
        (["--world-size", "0"], "--world-size"),
        (["--micro-batch", "3"], "--micro-batch 3, but the file's"),
        (["--world-size", "9", "--gpus-per-node", "8"], "--world-size: 9 processes"),
        (["--deepspeed", "new"], "--deepspeed"),
    ],
)
def test_a_wrong_flag_is_named(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(CONFIG, *MACHINES, *flags, capsys=capsys)
    assert code == 2
    assert said in err


def test_a_spec_beside_the_config_says_the_rest_and_flags_say_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    text = "model: llama-2-7b\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 4}\ntraining: {sequence_length: 512}\n"
    Path("spec.yaml").write_text(text, encoding="utf-8")
    _, found, _ = run(CONFIG, "--spec", "spec.yaml", capsys=capsys)
    assert (found["plan"]["world_size"], found["sequence_length"]) == (4, 512)
    _, found, _ = run(CONFIG, "--spec", "spec.yaml", "--sequence-length", "1024", "--world-size", "8", capsys=capsys)
    assert (found["plan"]["world_size"], found["plan"]["gpus_per_node"], found["sequence_length"]) == (8, 4, 1024)


def test_a_spec_instead_of_a_config_gives_its_plans_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text("model: llama-2-7b\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 8}\n", encoding="utf-8")
    assert main(["plan", "s.yaml", "--format", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["estimate", "s.yaml", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == planned
    assert main(["estimate", "s.yaml", "--model", "llama-2-7b"]) == 2


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", "{", '{"a": }', "{}x", "\x00", "model: llama-2-7b", '{"weights": 3}', "{" * 500, "- a\n- b\n"],
)
def test_what_is_no_config_is_refused_with_its_name(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(text, *MACHINES, capsys=capsys)
    assert code == 2
    assert "ds_config.json" in err


@pytest.mark.parametrize("command", [["estimate"], ["convert", "--to", "fsdp2"]])
def test_a_file_commands_nothing_to_a_terminal(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    escape = "\x1b[2J"
    config = CONFIG | {
        escape: escape,
        "tensorboard": {"job_name": escape},
        "zero_optimization": {"stage": 3, escape: 1},
    }
    Path("ds_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main([command[0], "ds_config.json", *command[1:], *MACHINES]) == 0
    seen = capsys.readouterr()
    assert escape not in seen.out + seen.err
    assert "\\x1b" in seen.out + seen.err


def test_the_text_starts_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ds_config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    assert main(["estimate", "ds_config.json", *MACHINES]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "llama-2-7b (6.74B parameters) on 8 x a100-80gb-sxm"
    assert lines[1].startswith("fits: ZeRO-3, micro-batch 1 x 4: ")
