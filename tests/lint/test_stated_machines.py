"""Configs on stated machines: the examples are quiet by their own specs, amounts are those that a person works out."""

import random
from pathlib import Path

import pytest
from console import ROOT
from deepspeed_configs import lint, mutated, real_values, target_by

from dsgen.lint.amounts import elements, in_bytes
from dsgen.lint.project import target_of_file
from dsgen.lint.settings import Settings

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/ds_config.json"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_quiet_on_its_own_machines(folder: Path) -> None:
    target = target_of_file(str(folder / "ds_config.json"), {"spec": str(folder / "spec.yaml")}, Settings())
    assert target.model is not None
    assert target.gpu is not None
    findings = lint((folder / "ds_config.json").read_text("utf-8"), target)
    assert [finding.message for finding in findings if finding.severity != "info"] == []


MODEL = ["--model", "llama-2-7b", "--gpu", "a100-40gb-sxm", "--world-size", "16", "--method", "full"]
LENGTH = ["--sequence-length", "4096", "--checkpointing", "none"]
ZERO_2 = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
NAMED = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}


def codes(config: dict[str, object], flags: list[str]) -> set[str]:
    return {finding.code for finding in lint(config, target_by(flags)) if finding.severity != "info"}


def test_what_is_not_stated_is_not_guessed() -> None:
    assert codes(ZERO_2 | NAMED, MODEL + LENGTH) == {"DS710"}
    for left_out in ("--model", "--gpu", "--world-size", "--sequence-length", "--checkpointing"):
        flags = MODEL + LENGTH
        place = flags.index(left_out)
        assert codes(ZERO_2 | NAMED, flags[:place] + flags[place + 2 :]) == set(), left_out
    auto = ZERO_2 | NAMED | {"train_micro_batch_size_per_gpu": "auto"}
    assert codes(auto, MODEL + LENGTH) == set()
    assert codes(auto, [*MODEL, *LENGTH, "--micro-batch", "4"]) == {"DS710"}
    # 7B alone says how many parameters there are, and nothing of their shapes.
    assert codes(ZERO_2 | NAMED, ["--model", "7B", *MODEL[2:], *LENGTH]) == set()


def test_states_by_hand() -> None:
    """Stage 1 on 8 GPUs: 2 P + 2 P + (4 + 8) P / 8 bytes of 6.738e9 parameters = 13.5 + 13.5 + 3.37 + 6.74 GB."""
    config = {"train_batch_size": 8, "bf16": {"enabled": True}, "zero_optimization": {"stage": 1}, **NAMED}
    flags = ["--model", "llama-2-7b", "--world-size", "8", "--method", "full"]
    (finding,) = (f for f in lint(config, target_by([*flags, "--gpu", "32GiB"])) if f.code == "DS707")
    for word in ("weights 13.5 GB", "gradients 13.5 GB", "fp32 weights 3.37 GB", "optimizer states 6.74 GB", "37.1 GB"):
        assert word in finding.message
    assert finding.severity == "error"
    assert "DS707" not in codes(config, [*flags, "--gpu", "40GiB"])
    assert "DS707" not in codes(config | {"optimizer": {"type": "AdamW"}}, [*flags[:4], "--gpu", "48GiB"])


def test_offloaded_states_by_hand() -> None:
    """8 ranks on 2 nodes: 16 P / 2 = 53.9 GB of fp32 weights, gradients and two states on each."""
    config = {
        "train_batch_size": 8,
        "bf16": {"enabled": True},
        **NAMED,
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
    flags = ["--model", "llama-2-7b", "--world-size", "8", "--gpus-per-node", "4", "--method", "full"]
    (finding,) = (f for f in lint(config, target_by([*flags, "--host-memory", "53GB"])) if f.code == "DS708")
    assert "= 53.9 GB on each node, which has 53 GB" in finding.message
    assert codes(config, [*flags, "--host-memory", "54GB"]) == set()


@pytest.mark.parametrize(
    ("count", "shown"), [(2.2e8, "0.22 GB"), (2.8e10, "28 GB"), (1.2e11, "120 GB"), (5e12, "5 TB"), (40, "40 bytes")]
)
def test_bytes_are_decimal_as_hardware_is_sold(count: float, shown: str) -> None:
    assert in_bytes(count) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(500_000_000, "5e8"), (5_308_416, "5.308e6"), (1000, "1000"), (1e12, "1e12"), (0, "0")]
)
def test_elements_as_configs_write_them(count: float, shown: str) -> None:
    assert elements(count) == shown


STATED = [
    [*MODEL, *LENGTH, "--gpus-per-node", "8", "--host-memory", "64GB", "--micro-batch", "2"],
    ["--model", "mixtral-8x7b", "--gpu", "v100-32gb-sxm", "--world-size", "6", "--sequence-length", "1000"],
    ["--model", "110M", "--gpu", "p100-16gb", "--host-memory", "8GB", "--world-size", "1", "--loaded-by", "deepspeed"],
    ["--model", "gpt2", "--gpu", "gaudi2-96gb", *LENGTH, "--world-size", "3", "--micro-batch", "1", "--method", "lora"],
]


@pytest.mark.parametrize("flags", STATED, ids=" ".join)
def test_no_config_crashes_on_stated_machines(flags: list[str]) -> None:
    rng, target = random.Random(), target_by(flags)
    for _ in range(100):
        config = rng.choice(real_values())
        for _ in range(rng.randrange(4)):
            config = mutated(config, rng)
        lint(config, target)
    lint(ZERO_2 | {"scheduler": {"type": {}}, "optimizer": {"type": []}}, target)
