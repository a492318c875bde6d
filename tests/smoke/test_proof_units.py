"""The parts of the proof that need no torch: what is expected, what is changed, and what a difference means."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smoke_helpers import config

from dsgen.smoke.adapt import Adapted
from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.proof.deepspeed_trials import deepspeed_trials, not_comparable
from dsgen.smoke.proof.expected_collectives import deepspeed, fsdp2
from dsgen.smoke.proof.fsdp2_trials import fsdp2_trials
from dsgen.smoke.proof.judge import checks, equality
from dsgen.smoke.proof.optimizers import plain_optimizer
from dsgen.smoke.proof.values import Trial
from dsgen.smoke.script import run_script


def trials(content: dict[str, Any], processes: int = 2) -> dict[str, Trial]:
    adapted = Adapted(config=content, optimizer=None, changes=())
    return {trial.name: trial for trial in deepspeed_trials(adapted, ("none", 1), processes)}


def test_trials_of_a_bf16_config() -> None:
    found = trials(config(2, bf16={"enabled": True}, scheduler={"type": "WarmupLR"}, train_batch_size=4))
    assert list(found) == ["configured optimizer, fp32", "clipped SGD, fp32", "configured optimizer, bf16"]
    fp32, sgd, bf16 = found.values()
    assert (fp32.precision, sgd.precision, bf16.precision) == ("fp32", "fp32", "bf16")
    assert fp32.content["config"]["bf16"] == {"enabled": False}
    assert bf16.content["config"]["bf16"] == {"enabled": True}
    assert sgd.optimizer is not None
    assert sgd.optimizer["type"] == "SGD"
    assert sgd.clip == {"share": 0.3}
    assert fp32.clip == 1.0
    for trial in found.values():
        assert "scheduler" not in trial.content["config"]
        assert {change.key for change in trial.changes} >= {"scheduler", "train_batch_size"}
        assert all(change.why for change in trial.changes)


def test_sgd_always_accumulates() -> None:
    found = trials({**config(1), "gradient_accumulation_steps": 1})
    assert found["configured optimizer, fp32"].accumulation == 1
    assert found["clipped SGD, fp32"].accumulation == 2


def test_bf16_sums_are_followed_where_they_are_known() -> None:
    name = "configured optimizer, bf16"
    bf16 = {"bf16": {"enabled": True}}
    assert {stage: trials(config(stage, **bf16))[name].sums for stage in range(4)} == {
        0: "bf16 on ranks",
        1: "bf16 on ranks",
        2: "bf16 each step",
        3: "bf16 each step",
    }
    fp32 = {"data_types": {"grad_accum_dtype": "fp32"}}
    assert {stage: trials(config(stage, **bf16, **fp32))[name].sums for stage in (1, 2, 3)} == {
        1: "fp32 on ranks",
        2: "fp32 each step",
        3: "fp32 each step",
    }
    for content, processes in ((config(2, **bf16, communication_data_type="fp32"), 2), (config(2, **bf16), 4)):
        assert trials(content, processes)[name].tolerance == "bf16, sums not followed"


@pytest.mark.parametrize(
    ("section", "plain"),
    [
        ({"type": "Adam", "params": {"lr": 1, "torch_adam": True}}, {"type": "AdamW", "params": {"lr": 1}}),
        ({"type": "Adam", "params": {"adam_w_mode": False, "torch_adam": True}}, {"type": "Adam", "params": {}}),
        # DeepSpeed's own Adam does not decay by default.
        ({"type": "AdamW", "params": {"lr": 1}}, {"type": "AdamW", "params": {"lr": 1, "weight_decay": 0.0}}),
        ({"type": "AdamW", "params": {"bias_correction": False}}, None),
        (
            {"type": "AdamW", "params": {"betas": [0.9, 0.95], "weight_decay": 0.1}},
            {"type": "AdamW", "params": {"betas": (0.9, 0.95), "weight_decay": 0.1}},
        ),
        ({"type": "SGD", "params": {"lr": 0.1}}, {"type": "SGD", "params": {"lr": 0.1}}),
        ({"type": "Muon", "params": {}}, None),
        ({}, None),
    ],
)
def test_the_plain_loops_optimizer(section: dict[str, Any], plain: dict[str, Any] | None) -> None:
    assert plain_optimizer(section) == plain


def test_what_no_plain_loop_follows() -> None:
    assert not_comparable(Edits(config(2))) is None
    assert "curriculum_learning" in (not_comparable(Edits(config(2, curriculum_learning={"enabled": True}))) or "")
    assert not_comparable(Edits(config(2, curriculum_learning={"enabled": False}))) is None
    assert "autotp_size" in (not_comparable(Edits(config(1, tensor_parallel={"autotp_size": 2}))) or "")


def bounds(expected: Any) -> dict[str, tuple[float, float]]:
    return {one.what: (one.low, one.high) for one in expected}


def test_zero_by_hand() -> None:
    """P = 1000 trained of 1200 elements, K = 4: stage 2 reduces P in each of K micro-steps, stage 1 once."""
    common = {"accumulation": 4, "trained": 1000, "elements": 1200, "reduce_bucket": 5000}
    by_stage = {stage: bounds(deepspeed(stage=stage, **common)) for stage in range(4)}
    assert [by_stage[stage]["gradients reduced"][0] for stage in range(4)] == [1000, 1000, 4000, 4000]
    assert [by_stage[stage]["reductions of gradients"] for stage in range(3)] == [(1, 1), (1, 1), (4, 4)]
    assert [by_stage[stage]["weights gathered"][0] for stage in range(3)] == [0, 1000, 1000]
    low, high = by_stage[3]["weights gathered"]
    assert low < 1200 < 2 * 4 * 1200 < high
    small = bounds(deepspeed(stage=2, **{**common, "reduce_bucket": 100}))
    assert "reductions of gradients" not in small  # their number depends on how tensors fill the buckets


def unit(reshard: bool, trained: bool = True) -> dict[str, Any]:
    return {"reshard": reshard, "trained": trained}


@pytest.mark.parametrize(
    ("units", "replicated", "each", "counts"),
    [
        # Two blocks and the root, K = 4: blocks are gathered twice in each micro-batch, the root once.
        ([unit(True), unit(True), unit(False)], False, False, (20, 3, 0)),
        ([unit(True), unit(True), unit(False)], False, True, (20, 12, 0)),
        ([unit(False), unit(False), unit(False)], False, False, (3, 3, 0)),
        ([unit(True), unit(True), unit(False)], True, False, (20, 3, 3)),
        ([unit(True), unit(True), unit(False, trained=False)], False, False, (20, 2, 0)),
    ],
)
def test_fsdp2_by_hand(units: Any, replicated: bool, each: bool, counts: tuple[int, int, int]) -> None:
    found = bounds(fsdp2(units=units, accumulation=4, replicated=replicated, reduce_each=each))
    assert tuple(low for low, _ in found.values()) == counts
    assert all(low == high for low, high in found.values())


def figures(**changes: Any) -> dict[str, Any]:
    """Those of a run that is equal to the plain loop, of a layout that no rule counts for."""
    right = {
        "losses": [5.0, 4.0],
        "plain_losses": [5.0, 4.0],
        "norms": [1.0, 1.0],
        "plain_norms": [1.0, 1.0],
        "clip": 0.3,
        "apart": 0.0,
        "moved": 1.0,
        "distance": 1.0,
        "collectives": [],
        "parameters": 1000,
        "layout": {},
    }
    return {**right, **changes}


SGD = next(replace(trial, layout={}) for trial in fsdp2_trials("fp32", 4) if trial.name == "clipped SGD, fp32")


@pytest.mark.parametrize(
    ("changes", "failed", "words"),
    [
        ({}, [], ""),
        ({"norms": [4.0, 1.0]}, ["first gradient norm"], "4 times what it should be: the loss is not divided"),
        ({"norms": [0.25, 1.0]}, ["first gradient norm"], "1/4 of what it should be: the loss is divided by the"),
        ({"norms": [8.0, 1.0]}, ["first gradient norm"], "neither by the accumulation steps nor by the ranks"),
        ({"norms": [0.7, 1.0]}, ["first gradient norm"], "misses micro-batches or ranks"),
        ({"norms": [float("nan"), 1.0]}, ["first gradient norm"], ""),
        ({"losses": [5.1, 4.0]}, ["losses"], "start from other weights"),
        ({"losses": [float("nan"), 4.0]}, ["losses"], ""),
        ({"apart": 1.0, "distance": 0.0}, ["weights"], "the optimizer was made before sharding"),
        ({"apart": 2.0, "distance": 3.0}, ["weights"], "it is not clipped"),
        ({"apart": float("nan")}, ["weights"], ""),
        ({"apart": 1e-3}, ["weights"], ""),
        ({"layout": {"same_data": True}}, ["data"], "Sampler"),
    ],
)
def test_what_a_difference_means(changes: dict[str, Any], failed: list[str], words: str) -> None:
    seen = figures(**changes)
    assert [check.name for check in checks(SGD, seen, 1) if not check.ok] == failed
    equal = equality([(SGD, seen)], 2)
    assert equal.verdict is (not failed)
    assert words in (equal.reason or "")


def test_a_script_that_fails_says_why(tmp_path: Path) -> None:
    assert run_script(tmp_path, 1, 1, 10, {}) is None
    (tmp_path / "launch").mkdir()
    launcher = tmp_path / "launch" / "torchrun.sh"
    launcher.write_text('echo "ValueError: no data"; exit 3\n', "utf-8")
    failed = run_script(tmp_path, 1, 1, 10, {})
    assert failed is not None
    assert (failed.ok, failed.reason) == (False, "ended with code 3: ValueError: no data")
    launcher.write_text("echo \"ModuleNotFoundError: No module named 'accelerate'\"; exit 1\n", "utf-8")
    missing = run_script(tmp_path, 1, 1, 10, {})
    assert missing is not None
    assert (missing.ok, missing.reason) == (None, "not started: accelerate is not installed")
    launcher.write_text("echo 'step 1  loss nan  lr 0'\n", "utf-8")
    diverged = run_script(tmp_path, 1, 1, 10, {})
    assert diverged is not None
    assert diverged.ok is False
    launcher.write_text("sleep 60\n", "utf-8")
    hanging = run_script(tmp_path, 1, 1, 0.5, {})
    assert hanging is not None
    assert hanging.reason == "took longer than 0.5 seconds and was stopped"
