"""What we say DeepSpeed refuses, the installed DeepSpeed refuses; and what it refuses, we say."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deepspeed_configs import lint, mutated, real_values

from dsgen.facts.versions import libraries
from dsgen.lint.finding import Finding
from dsgen.lint.target import make_target

VERDICTS = Path(__file__).with_name("deepspeed_verdicts.py")
EXECUTED = libraries()["deepspeed"].executed

# Sections that DeepSpeed's own parser checks to the last key; elsewhere a mistake shows in the engine, or never.
PARSED = {"zero_optimization", "fp16", "bf16", "wandb", "csv_monitor", "tensorboard", "comet", "compile"}
PARSED |= {"tensor_parallel", "comms_logger", "hybrid_engine", "weight_quantization"}
# Our other errors are of what is accepted and then crashes in the engine, or trains otherwise than written.
REFUSALS = {"DS111", "DS112", "DS113", "DS115", "DS117", "DS201", "DS202", "DS308", "DS401", "DS403", "DS407"}


def with_a_micro_batch(config: dict[str, Any]) -> dict[str, Any]:
    """The batch sizes of the corpus are for many GPUs; the parser alone sees one process."""
    sizes = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    return {key: value for key, value in config.items() if key not in sizes} | {"train_micro_batch_size_per_gpu": 1}


def claims_refusal(finding: Finding) -> bool:
    if finding.severity != "error" or not finding.path or finding.path[0] not in PARSED:
        return False
    return finding.code in REFUSALS or (finding.code == "DS110" and "refuses it" in finding.message)


@pytest.fixture(scope="module")
def judged() -> list[tuple[dict[str, Any], list[Finding], str | None]]:
    """Configs, our findings for the installed version, and what that version says."""
    rng = random.Random()
    base = [with_a_micro_batch(config) for config in real_values()]
    configs = base + [mutated(rng.choice(base), rng) for _ in range(800)]
    configs += [mutated(config, rng) for config in configs[-400:]]
    ran = subprocess.run(
        [sys.executable, str(VERDICTS)],
        input=json.dumps(configs),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "DS_ACCELERATOR": "cpu"},
    )
    target = make_target(EXECUTED, "deepspeed", world_size=1)
    return [(config, lint(config, target), said) for config, said in zip(configs, json.loads(ran.stdout), strict=True)]


def test_what_we_say_is_refused_is_refused(judged: list[tuple[dict[str, Any], list[Finding], str | None]]) -> None:
    claimed = [(config, findings, said) for config, findings, said in judged if any(map(claims_refusal, findings))]
    assert len(claimed) > 50
    for config, findings, said in claimed:
        assert said is not None, (config, [finding.message for finding in findings if claims_refusal(finding)])


def test_what_is_refused_is_an_error(judged: list[tuple[dict[str, Any], list[Finding], str | None]]) -> None:
    # GPUDirect Storage is refused for want of a GPU here, which a file does not tell.
    refused = [(config, findings, said) for config, findings, said in judged if said and "GDS" not in said]
    missed = [(said, config) for config, findings, said in refused if not any(f.severity == "error" for f in findings)]
    assert len(refused) > 100
    # Two mistakes at once, of which we see the lesser, and structures that nobody writes: at most 1 in 100.
    assert len(missed) <= len(refused) // 100, missed[:5]
