"""What the rules for training code say about torch is so: on the torch that is installed, on two gloo processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_SECONDS = 180


def start(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(HERE / script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process: "subprocess.Popen[str]") -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, err[-2000:]
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    store = tmp_path_factory.mktemp("store") / "store"
    running = [start("training_claims.py", str(rank), str(store)) for rank in range(2)]
    try:
        return [answer(process) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return answer(start("accumulation_claims.py"))


# One process.


def test_a_gate_off_by_one_makes_a_first_step_of_one_micro_batch(alone: dict[str, Any]) -> None:
    assert alone["gates"] == {
        "i % k == 0": [1, 4, 4, 1],
        "(i + 1) % k == 0": [4, 4, 2],
        "i % k == k - 1": [4, 4, 2],
        "i and i % k == 0": [5, 4, 1],
        "with a last one": [4, 4, 2, 0],
    }


def test_what_the_loss_is_divided_by_is_what_the_gradient_is_off_by(alone: dict[str, Any]) -> None:
    assert alone["sizes"] == pytest.approx({"not divided": 4.0, "divided": 1.0, "divided twice": 0.25}, rel=1e-4)


def test_clearing_or_clipping_each_micro_batch_turns_the_gradient(alone: dict[str, Any]) -> None:
    assert alone["directions"]["divided"] == pytest.approx(1.0, abs=1e-5)
    assert alone["directions"]["cleared with each"] < 0.99
    assert alone["directions"]["clipped with each"] < 0.9999


def test_gradients_cleared_before_the_step_train_nothing_and_never_cleared_too_much(alone: dict[str, Any]) -> None:
    moved = alone["clearing"]
    assert moved["before the step"] == 0
    assert 0 < moved["after the step"] < moved["never"]


def test_a_schedule_stepped_per_micro_batch_ends_early(alone: dict[str, Any]) -> None:
    assert alone["schedule"] == pytest.approx({"per micro-batch": 0.0, "per update": 0.5})


def test_small_gradients_are_zero_in_fp16_not_in_bf16(alone: dict[str, Any]) -> None:
    assert alone["fp16"]["torch.float16"] > 0.9
    assert alone["fp16"]["torch.bfloat16"] == 0


def test_a_clip_of_scaled_gradients_takes_nearly_all(alone: dict[str, Any]) -> None:
    clip = alone["scaled_clip"]
    assert clip["as it is"] < clip["unscaled first"] / 1000


def test_a_sampler_and_shuffle_exclude_each_other(alone: dict[str, Any]) -> None:
    assert "mutually exclusive" in alone["sampler_and_shuffle"]


# Two processes.


def test_ddp_all_reduces_each_micro_batch_unless_no_sync_holds_forward_too(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert rank["ddp_reductions"] == {"without": 2, "backward only": 2, "both": 1}


def test_no_sync_on_the_last_micro_batch_lets_ranks_drift(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["ddp_no_sync_right"] < 1e-6
    assert ranks[0]["ddp_no_sync_inverted"] > 1e-3


def test_fsdp2_has_neither_no_sync_nor_clip(ranks: list[dict[str, Any]]) -> None:
    expected = {"no_sync": False, "clip_grad_norm_": False, "set_requires_gradient_sync": True}
    assert ranks[0]["fsdp2_lacks"] == expected


def test_gradient_sync_that_stays_off_trains_nothing(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["fsdp2_sync_stays_off"] == {"none": True, "moved": 0.0}


def test_torch_clips_a_shard_of_fsdp1_and_the_whole_of_fsdp2(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        norms = rank["norms"]
        assert norms["fsdp1"] == pytest.approx(norms["true"], rel=1e-4)
        assert norms["torch on fsdp2"] == pytest.approx(norms["true"], rel=1e-4)
        assert norms["torch on fsdp1"] < 0.95 * norms["true"]
    assert ranks[0]["norms"]["torch on fsdp1"] != pytest.approx(ranks[1]["norms"]["torch on fsdp1"], rel=1e-2)


def test_a_plain_scaler_decides_for_each_rank_alone_on_fsdp1(ranks: list[dict[str, Any]]) -> None:
    assert [rank["plain_scaler_on_fsdp1"] for rank in ranks] == [2.0, 4.0]


def test_an_optimizer_built_before_sharding_trains_nothing(ranks: list[dict[str, Any]]) -> None:
    moved = ranks[0]["optimizer_first"]
    assert moved["fsdp2"] == moved["fsdp1"] == 0
    assert moved["fsdp1, parameters kept"] > 0
    assert moved["ddp"] > 0


def test_frozen_and_trained_parameters_do_not_flatten(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["mixed_requires_grad"] == {"flat": "ValueError", "kept": "nothing"}


def test_hybrid_sharding_needs_two_dimensions(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["hybrid_mesh"] == {"1": "ValueError", "2": "nothing", "nothing given": "ValueError"}


def test_tied_weights_belong_into_one_unit(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["tied_apart"] == {"apart": "ValueError", "together": "nothing"}


def test_a_policy_is_not_inherited(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["policy_on_some"] == {"root": "RuntimeError", "blocks": "RuntimeError", "both": "nothing"}


def test_the_root_comes_last_and_comes(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["root_first"] == "TypeError"
    assert ranks[0]["root_left_out"] > 1e-3


def test_fsdp1_leaves_one_dimension(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["shapes_of_fsdp1"] == [1]


def test_a_sampler_needs_set_epoch(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["sampler_orders"] == {"same without": True, "same with": False}


def test_a_reentrant_checkpoint_stops_gradients_behind_frozen_layers(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["reentrant_behind_frozen"] == {"reentrant": False, "not": True}
