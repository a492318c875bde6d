"""What of a config acts, and why the rest does not."""

import json
from typing import Any

import pytest

from dsgen.lint.config_file import read_config
from dsgen.lint.in_force import Value, in_force
from dsgen.lint.target import make_target


def values(config: Any, version: str = "0.19.8", loaded_by: Any = "deepspeed") -> dict[str, Value]:
    file = read_config(json.dumps(config).encode(), loaded_by)
    return {".".join(value.path): value for value in in_force(file, make_target(version, loaded_by))}


# config, version -> key -> value in force. Sources: shared facts, and the release's own code where a line is named.
ACTING: list[tuple[dict[str, Any], str, str, Any]] = [
    ({}, "0.19.2", "gradient_clipping", 0.0),  # default changed in 0.19.3, PR 8068
    ({}, "0.19.3", "gradient_clipping", 1.0),
    ({}, "0.15.1", "steps_per_print", 10),
    ({"zero_optimization": {"stage": "2"}}, "0.15.4", "zero_optimization.stage", 2),  # pydantic 2
    ({"zero_optimization": {"stage": 3}}, "0.14.4", "zero_optimization.overlap_comm", True),
    ({"zero_optimization": {"stage": 2}}, "0.14.4", "zero_optimization.overlap_comm", False),
    ({"bf16": {"enabled": "false"}}, "0.16.9", "bf16.enabled", True),  # any text is true
    ({"bf16": {"enabled": "false"}}, "0.17.1", "bf16.enabled", False),
    ({"bf16": {"enabled": True}}, "0.16.9", "bf16.immediate_grad_update", True),  # constants.py:131
    ({"zero_optimization": {"stage": "auto"}}, "0.19.8", "zero_optimization.stage", 0),
    ({"optimizer": {"type": "OneBitAdam"}}, "0.19.6", "optimizer.type", "OneBitAdam"),
]


@pytest.mark.parametrize(("config", "version", "key", "value"), ACTING, ids=lambda word: str(word)[:40])
def test_what_acts(config: Any, version: str, key: str, value: Any) -> None:
    found = values(config, version)[key]
    assert (found.value, found.fate) == (value, "acts")


ZERO_2: dict[str, Any] = {"stage": 2, "stage3_max_live_parameters": 9, "offload_param": {"device": "cpu"}}
NOT_ACTING: list[tuple[dict[str, Any], str, str, str, str]] = [
    ({"zero_optimization": ZERO_2}, "0.19.8", "zero_optimization.stage3_max_live_parameters", "ignored", "stage is 2"),
    ({"zero_optimization": ZERO_2}, "0.19.8", "zero_optimization.offload_param.device", "ignored", "stage is 2"),
    ({"disable_allgather": True}, "0.19.8", "disable_allgather", "ignored", "nothing reads it"),
    ({"zero_optimisation": {}}, "0.19.8", "zero_optimisation", "ignored", "no key"),
    ({"fp16": {"enabled": False, "loss_scale": 1}}, "0.19.8", "fp16.loss_scale", "ignored", "fp16 is off"),
    ({"fp16": {"opt_level": 1}}, "0.17.0", "fp16.opt_level", "ignored", "no key"),
    ({"fp16": {"opt_level": 1}}, "0.17.1", "fp16.opt_level", "refused", "no key"),
    ({"amp": {"enabled": False}}, "0.19.8", "amp", "refused", "removed in DeepSpeed 0.19.8"),
    ({"aio": {"thread_count": 4}}, "0.16.4", "aio.thread_count", "ignored", "intra_op_parallelism"),
    ({"log_level": "info"}, "0.16.4", "log_level", "ignored", "comes with DeepSpeed 0.19.3"),
    ({"train_batch_size": "auto"}, "0.19.8", "train_batch_size", "refused", "auto"),
    ({"optimizer": {"type": "OneBitAdam"}}, "0.19.7", "optimizer.type", "refused", "removed in DeepSpeed 0.19.7"),
    (
        {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "buffer_count": 3}}},
        *("0.19.8", "zero_optimization.offload_param.buffer_count", "ignored", "with device nvme; it is cpu"),
    ),
    (
        {"fp16": {"enabled": True, "loss_scale": 128, "hysteresis": 4}},
        *("0.19.8", "fp16.hysteresis", "ignored", "loss_scale 128 is fixed"),
    ),
    (
        {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}},
        *("0.19.8", "zero_optimization.offload_optimizer.nvme_path", "ignored", "nvme acts as cpu at stage 2"),
    ),
    ({"allgather_size": 7}, "0.19.8", "allgather_size", "ignored", 'beside "zero_optimization": true'),
]


@pytest.mark.parametrize(("config", "version", "key", "fate", "why"), NOT_ACTING, ids=lambda word: str(word)[:40])
def test_what_does_not_act(config: Any, version: str, key: str, fate: str, why: str) -> None:
    found = values(config, version)[key]
    assert found.fate == fate
    assert why in str(found.why)


def test_whoever_loads_the_file_fills_in_auto() -> None:
    config = {"train_batch_size": "auto", "zero_optimization": {"stage": 3, "sub_group_size": "auto"}}
    found = values(config, loaded_by="transformers")
    assert found["train_batch_size"].origin == "loader"
    assert (found["zero_optimization.sub_group_size"].value, found["zero_optimization.sub_group_size"].origin) == (
        1_000_000_000,
        "default",
    )


def test_another_spelling_stands_for_the_key() -> None:
    found = values({"zero_optimization": {"stage": 3, "max_live_parameters": 5}})
    assert found["zero_optimization.max_live_parameters"].means[-1] == "stage3_max_live_parameters"
    assert "zero_optimization.stage3_max_live_parameters" not in found
