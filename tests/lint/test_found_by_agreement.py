"""What mutated configs showed against the parsers of several releases."""

import pytest
from deepspeed_configs import lint

from dsgen.lint.target import make_target


def errors(config: object, version: str) -> list[str]:
    target = make_target(version, "deepspeed", world_size=1)
    return [found.code for found in lint(config, target) if found.severity == "error"]


@pytest.mark.parametrize("version", ["0.14.4", "0.15.4", "0.19.7"])
@pytest.mark.parametrize("wrong", [{"min_time": ["a"]}, {"max_gpus": 0}, {"micro_batch_sizes": [0]}])
def test_elasticity_is_read_once_it_is_enabled(wrong: dict[str, object], version: str) -> None:
    whole = {"max_train_batch_size": 4, "micro_batch_sizes": [1], **wrong}
    assert errors({"train_batch_size": 1, "elasticity": whole}, version) == []
    assert errors({"elasticity": {"enabled": True, **whole}}, version) != []


@pytest.mark.parametrize("version", ["0.14.4", "0.15.4", "0.19.8"])
@pytest.mark.parametrize("path", [1, True, 0.5])
def test_no_pydantic_makes_a_path_of_a_number(path: object, version: str) -> None:
    stage = {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": path}}
    assert errors({"train_batch_size": 1, "zero_optimization": stage}, version) == ["DS111"]


@pytest.mark.parametrize("power", [64, 5000, 10**400, 1e12])
def test_a_loss_scale_beyond_all_numbers(power: float) -> None:
    """2**64 is no integer of 64 bits: torch.tensor(1.0) * 2**64 raises OverflowError, times 2**63 does not."""
    fp16 = {"enabled": True, "initial_scale_power": power}
    assert errors({"train_batch_size": 1, "fp16": fp16}, "0.16.4") == ["DS404"]
    for unread in ({"enabled": False}, {"loss_scale": 128}):
        assert errors({"train_batch_size": 1, "fp16": fp16 | unread}, "0.16.4") == []


@pytest.mark.parametrize("power", [63, -(10**400), 63.0])
def test_a_loss_scale_that_torch_can_multiply_by_is_bad_advice_only(power: float) -> None:
    assert errors({"train_batch_size": 1, "fp16": {"enabled": True, "initial_scale_power": power}}, "0.16.4") == []


def test_the_old_name_of_the_section_of_bf16() -> None:
    section = {"enabled": True, "bf16_optimizer_states": 1}
    for name in ("bf16", "bfloat16"):
        assert errors({"train_batch_size": 1, name: section}, "0.19.8") == ["DS407"]


@pytest.mark.parametrize(
    ("enabled", "ignore", "found"), [(1.5, False, True), ("no", 0, True), (0, 0, False), (1, 1, False)]
)
def test_switches_of_elasticity_go_by_truth(enabled: object, ignore: object, found: bool) -> None:
    elasticity = {"enabled": enabled, "ignore_non_elastic_batch_info": ignore, "max_train_batch_size": 8}
    said = errors({"train_batch_size": 1, "elasticity": elasticity | {"micro_batch_sizes": [1]}}, "0.18.9")
    assert any(code == "DS203" for code in said) is found
