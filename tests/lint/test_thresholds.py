"""Where rules draw their lines: each follows from what DeepSpeed does, or from the table of models."""

import json
import math
from typing import Any

import pytest
from deepspeed_configs import lint, target_by

from dsgen.facts.models import models
from dsgen.lint.rules.deepspeed.parameters_that_are_never_sharded import _EVERYTHING, _MUCH
from dsgen.shapes.from_row import counted


def said(config: dict[str, Any], code: str, *flags: str) -> list[tuple[str, str]]:
    found = lint({"train_batch_size": 8} | config, target_by(flags))
    return [(finding.severity, finding.message) for finding in found if finding.code == code]


def zero(stage: int, **keys: Any) -> dict[str, Any]:
    return {"zero_optimization": {"stage": stage, **keys}}


def skipped(window: int, hysteresis: int) -> float:
    """The share of steps that DeepSpeed's DynamicLossScaler.update_scale skips where only scales up to 1 fit fp16."""
    scale, left, last, lost, steps = 1.0, hysteresis, -1, 0, 10_000
    for step in range(steps):
        if scale > 1:
            lost += 1
            left, scale = (left, scale / 2) if left == 1 else (left - 1, scale)
            last = step
        elif (good := step - last - 1) > 0 and good % window == 0:
            left, scale = hysteresis, scale * 2
    return lost / steps


@pytest.mark.parametrize("hysteresis", [1, 2, 4])
def test_a_window_is_reported_from_a_tenth_of_skipped_steps_on(hysteresis: int) -> None:
    for window in range(1, 60):
        config = {"fp16": {"enabled": True, "loss_scale_window": window, "hysteresis": hysteresis}}
        found = said(config | zero(2), "DS412")
        share = skipped(window, hysteresis)
        assert math.isclose(share, hysteresis / (window + 1 + hysteresis), rel_tol=0.02)
        assert bool(found) == (hysteresis / (window + 1 + hysteresis) >= 0.1), window
    [(severity, message)] = said({"fp16": {"enabled": True, "loss_scale_window": 1}} | zero(2), "DS412")
    assert (severity, "2 of 4" in message) == ("warning", True)


def test_no_block_of_a_dense_model_has_a_matrix_of_the_threshold() -> None:
    largest = {}
    for name, model in models().items():
        shapes = counted(model)
        if shapes.architecture.moe is None and shapes.blocks:
            largest[name] = (max(t.numel for block in shapes.blocks for t in block.tensors), shapes.parameters)
    assert len(largest) > 30
    assert all(numel < _EVERYTHING for numel, _ in largest.values())
    assert all(numel < _MUCH for numel, parameters in largest.values() if parameters < 9e9), "the advice is for 7B"


def test_persistence_is_a_warning_where_nothing_is_sharded() -> None:
    for value, severities in ((1e5, []), (1e8, ["info"]), (1e9, ["warning"]), (1e308, ["warning"])):
        found = said(zero(3, stage3_param_persistence_threshold=value), "DS323")
        assert [severity for severity, _ in found] == severities


def test_small_groups_are_advice_unless_they_are_moved() -> None:
    offload = {"offload_optimizer": {"device": "cpu"}}
    assert [severity for severity, _ in said(zero(3, sub_group_size=0), "DS324")] == ["info"]
    [(severity, message)] = said(zero(3, sub_group_size=0, **offload), "DS324")
    assert (severity, "moved by itself" in message) == ("warning", True)
    # The shard of a matrix of 4096 x 4096 on 16 ranks closes no such group any more.
    assert said(zero(3, sub_group_size=4096 * 4096 // 16, **offload), "DS324") == []


def test_buckets_are_a_warning_where_no_model_leaves_room_for_them() -> None:
    """3e9 x 2 bytes x 2 = 12 GB and 6 GB of weights at least: more than 17.2 GB; 2e9: 8 and 4 GB fit."""
    bf16 = {"bf16": {"enabled": True}}
    for size, severities in ((3e9, ["warning"]), (2e9, ["info"]), (1e9, [])):
        config = bf16 | zero(2, overlap_comm=True, reduce_bucket_size=size)
        assert [severity for severity, _ in said(config, "DS705", "--gpu", "16GiB")] == severities, size
    # Stage 3 shards the weights.
    config = bf16 | zero(3, reduce_bucket_size=8e9)
    assert [severity for severity, _ in said(config, "DS705", "--gpu", "16GiB")] == ["info"]


@pytest.mark.parametrize(
    ("text", "said_of"),
    [
        ('{"fp16": {"enabled": "auto"}, "bf16": {"enabled": true}}', ["DS405"]),
        ('{"fp16": {"enabled": "false"}, "bf16": {"enabled": true}}', ["DS111"]),
        ('{"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
         ["DS506"]),
    ],
)  # fmt: skip
def test_one_mistake_is_one_finding(text: str, said_of: list[str]) -> None:
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 1}} | json.loads(text)
    found = lint(config, target_by(["--deepspeed", "0.16.4", "--loaded-by", "deepspeed"]))
    assert [finding.code for finding in found if finding.severity != "info"] == said_of


def test_a_precision_section_that_is_not_switched_on() -> None:
    [(severity, message)] = said({"bf16": {"check_grad_overflow": True}}, "DS415", "--deepspeed", "0.19.8")
    assert severity == "warning"
    assert "bf16 is off and check_grad_overflow does nothing" in message
    assert said({"bf16": {}}, "DS415") == []
    assert said({"bf16": {"enable": True}}, "DS415") == []


@pytest.mark.parametrize("value", [0, False, "", []])
def test_nothing_is_an_empty_section_where_the_parser_asks_for_truth(value: Any) -> None:
    """deepspeed/module_inject/auto_ep_config.py:parse_autoep_config: ``if not param_dict``."""
    assert [severity for severity, _ in said({"expert_parallel": value}, "DS111", "--deepspeed", "0.19.8")] == [
        "warning"
    ]
    assert [severity for severity, _ in said({"expert_parallel": 1}, "DS111", "--deepspeed", "0.19.8")] == ["error"]
