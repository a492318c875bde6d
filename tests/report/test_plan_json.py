"""The JSON shape that scripts rely on (design: commands, the contract)."""

import json

import pytest
from plan_views import view

from dsgen.memory.ledger import PARTS
from dsgen.report.plan_json import plan_json, plan_object
from dsgen.steptime.values import TIME_PARTS


def test_keys() -> None:
    shown = plan_object(view())
    assert shown["version"] == 1
    assert set(shown) >= {
        "fits",
        "tight",
        "plan",
        "ledger",
        "basis",
        "step_time",
        "tokens_per_second_per_gpu",
        "alternatives",
        "rejected",
    }
    assert set(shown["ledger"]) == {"device", "host_per_node", "nvme_per_node", "disk", "states_classic"}
    device = shown["ledger"]["device"]
    assert list(device) == [
        "parts",
        "peak",
        "low",
        "high",
        "allocated",
        "reserved",
        "whole_gpu",
        "moment",
        "moments",
    ]
    assert set(shown["ledger"]["states_classic"]) == {"parameters", "gradients", "optimizer", "total"}
    assert all(set(entry) >= {"plan", "step_time", "tokens_per_second_per_gpu"} for entry in shown["alternatives"])
    assert all(set(entry) == {"plan", "reason"} for entry in shown["rejected"])


def test_parts_are_those_at_the_peak_and_sum_to_it() -> None:
    device = plan_object(view())["ledger"]["device"]
    assert list(device["parts"]) == list(PARTS)
    # Where the card has room, the allocator keeps more than is needed.
    assert sum(device["parts"].values()) == device["peak"] <= device["whole_gpu"]
    assert device["peak"] == max(moment["total"] for moment in device["moments"])
    assert device["moment"] in {moment["name"] for moment in device["moments"]}
    assert device["low"] <= device["peak"] <= device["high"]


def test_the_time_is_that_of_its_parts_and_gives_the_speed() -> None:
    shown = plan_object(view())
    time = shown["step_time"]
    assert set(time["parts"]) == set(TIME_PARTS)
    assert sum(time["parts"].values()) == pytest.approx(time["seconds"])
    assert time["low"] <= time["seconds"] <= time["high"]
    # 128 sequences of 4096 tokens on 8 GPUs
    assert shown["tokens_per_second_per_gpu"] == pytest.approx(128 * 4096 / time["seconds"] / 8)
    assert 0 < time["mfu"] < 1


def test_fits_is_the_band_within_the_budget() -> None:
    shown = plan_object(view())
    assert shown["fits"] is True
    assert shown["ledger"]["device"]["high"] <= shown["memory_budget"]


def test_plan_fields_are_those_of_the_plan() -> None:
    plan = plan_object(view(checkpointing={"every": 2}, zero_stage=3))["plan"]
    assert plan["zero_stage"] == 3
    assert plan["checkpointing"] == "every 2"
    assert plan["micro_batch"] * plan["accumulation"] * plan["data_parallel"] == plan["global_batch"] == 128
    assert plan["shard_group"] is None


def test_closest_plan_where_nothing_fits() -> None:
    shown = plan_object(view(zero_stage=0, checkpointing="none", micro_batch=16))
    assert shown["fits"] is False
    assert shown["ledger"]["device"]["high"] > shown["memory_budget"]
    assert shown["rejected"]
    assert shown["alternatives"] == []


@pytest.mark.parametrize("want", [{}, {"zero_stage": 0}])
def test_is_json_and_the_same_every_time(want: dict[str, object]) -> None:
    text = plan_json(view(**want))
    assert json.loads(text) == plan_object(view(**want))
    assert text == plan_json(view(**want))
    assert text.endswith("}\n")
