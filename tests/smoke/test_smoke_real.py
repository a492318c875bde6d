"""The real DeepSpeed, on two CPU processes, through the command line."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from smoke_helpers import MARK, ROOT, Ran, config, dsgen, left_behind, mark, needs_proc

CONFIGS: dict[str, tuple[int, dict[str, Any]]] = {
    "zero0": (0, config(0)),
    "zero1": (1, config(1, bf16={"enabled": True})),
    "zero2": (2, config(2, fp16={"enabled": True}, train_batch_size=16, gradient_accumulation_steps=8)),
    "zero3": (3, config(3)),
    "zero3-offload": (3, config(3, zero={"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}})),
}
SPEC = "examples/llama-2-7b-8xa100/spec.yaml"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, str]:
    """All stages and a spec in one command, so in one process group."""
    folder = tmp_path_factory.mktemp("smoke")
    for name, (_, content) in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    value = mark()
    names = [f"{name}.json" for name in CONFIGS]
    flags = ["--no-proof", "--format", "json", "--timeout", "200"]
    ran = dsgen(*names, str(ROOT / SPEC), *flags, cwd=folder, env={MARK: value})
    return ran, value


@pytest.fixture(scope="module")
def runs(everything: tuple[Ran, str]) -> dict[str, dict[str, Any]]:
    return {Path(run["config"]).stem: run for run in everything[0].json["runs"]}


def test_all_ran(everything: tuple[Ran, str]) -> None:
    ran = everything[0]
    assert [run["outcome"] for run in ran.json["runs"]] == ["ran"] * (len(CONFIGS) + 1), ran.err
    assert ran.code == 0
    assert "not the memory" in ran.json["proves"]
    assert {run["equal"]["reason"] for run in ran.json["runs"]} == {"--no-proof"}


@needs_proc
def test_nothing_is_left_behind(everything: tuple[Ran, str]) -> None:
    assert left_behind(everything[1]) == []


@pytest.mark.parametrize("name", CONFIGS)
def test_a_stage_trains(runs: dict[str, dict[str, Any]], name: str) -> None:
    run = runs[name]
    assert run["zero_stage"] == CONFIGS[name][0]  # as the engine says, so it is the stage that was asked for
    assert (run["device"], run["processes"]) == ("cpu", 2)
    assert len(run["losses"]) == 3
    # The batches repeat in every step: what learns, falls. It starts at a uniform guess over 256 tokens.
    assert run["losses"][0] == pytest.approx(math.log(256), rel=0.05)
    assert run["losses"][0] > run["losses"][1] > run["losses"][2]
    assert run["moved"] > 1e-3
    assert all(step["seconds"] > 0 for step in run["steps"])
    assert run["seconds"] > sum(step["seconds"] for step in run["steps"])


def test_sharding_changes_nothing_in_the_mathematics(runs: dict[str, dict[str, Any]]) -> None:
    """Same data, same weights, fp32: every stage must give the losses of the unsharded run."""
    for name in ("zero3", "zero3-offload"):
        assert runs[name]["losses"] == pytest.approx(runs["zero0"]["losses"], rel=1e-5)
        assert runs[name]["moved"] == pytest.approx(runs["zero0"]["moved"], rel=1e-4)


def test_only_stage_3_partitions_parameters(runs: dict[str, dict[str, Any]]) -> None:
    for name, (stage, _) in CONFIGS.items():
        run = runs[name]
        # Nearly all: norms alone are small enough to stay whole.
        least = 0.9 * run["model"]["parameters"] if stage == 3 else 0
        assert least <= run["partitioned_parameters"] <= (run["model"]["parameters"] if stage == 3 else 0)


def test_gradient_norms_where_deepspeed_gives_them(runs: dict[str, dict[str, Any]]) -> None:
    assert all(step["gradient_norm"] is None for step in runs["zero0"]["steps"])  # fp32 without ZeRO: none
    for name in ("zero1", "zero2", "zero3", "zero3-offload"):
        assert all(step["gradient_norm"] > 0.1 for step in runs[name]["steps"])
    assert runs["zero3"]["steps"][0]["gradient_norm"] == pytest.approx(
        runs["zero3-offload"]["steps"][0]["gradient_norm"], rel=1e-5
    )


def test_peak_memory_is_that_of_a_process_with_torch(runs: dict[str, dict[str, Any]]) -> None:
    for run in runs.values():
        assert len(run["peak_memory_per_rank"]) == 2
        assert all(50e6 < peak < 4e9 for peak in run["peak_memory_per_rank"])


def test_what_had_to_change_is_listed(runs: dict[str, dict[str, Any]]) -> None:
    changes = {change["key"]: (change["from"], change["to"]) for change in runs["zero2"]["changes"]}
    assert changes["train_batch_size"] == (16, 4)
    assert changes["gradient_accumulation_steps"] == (8, 2)
    assert changes["optimizer.params.torch_adam"] == (None, True)
    if "fp16.enabled" in changes:  # unless this CPU trains in fp16
        assert changes["fp16.enabled"] == (True, False)
        assert changes["bf16.enabled"] == (None, True)
    assert all(change["why"] for run in runs.values() for change in run["changes"])


def test_a_spec_runs_with_its_own_family(runs: dict[str, dict[str, Any]]) -> None:
    run = runs["spec"]
    assert run["model"]["family"].startswith("llama")
    assert run["moved"] > 0


def test_one_that_fails_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    wrong = config(3, train_batch_size=7)
    for name, content in (("first", config(2)), ("wrong", wrong), ("last", config(1))):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    flags = ["--no-proof", "--steps", "1", "--format", "json", "--timeout", "200"]
    ran = dsgen("first.json", "wrong.json", "last.json", *flags, cwd=tmp_path)
    first, failed, last = ran.json["runs"]
    assert ran.code == 1
    assert (first["outcome"], failed["outcome"], last["outcome"]) == ("ran", "failed", "ran")
    error = failed["error"]
    assert error["reason"].startswith(
        f"rank {error['rank']}, deepspeed.initialize: AssertionError: Check batch related parameters"
    )
    assert "7 != 1 * 2 * 2" in error["reason"]
    assert Path(error["log"]).is_file()
    assert "Check batch related parameters" in Path(error["log"]).read_text()
