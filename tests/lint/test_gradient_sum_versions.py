"""DS406 says what helps in the version at hand."""

from typing import Any

import pytest
from deepspeed_configs import lint

from dsgen.lint.target import make_target


def config(stage: int, dtype: str | None) -> dict[str, Any]:
    written: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 64,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
    }
    return written | ({"data_types": {"grad_accum_dtype": dtype}} if dtype else {})


# stage, written, DeepSpeed -> a word of the help, or None where nothing is found
CASES: dict[tuple[int, str | None, str], str | None] = {
    (2, None, "0.19.8"): "grad_accum_dtype",
    (2, None, "0.19.7"): "stage 3",
    (2, "fp32", "0.19.8"): None,
    (2, "fp32", "0.19.7"): "stage 3",
    (2, "float", "0.19.7"): "stage 3",
    (2, "bfloat16", "0.19.7"): None,  # asked for in so many words
    (1, "fp32", "0.19.7"): None,
    (3, "fp32", "0.19.7"): None,
    (3, None, "0.19.7"): "grad_accum_dtype",
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_help(case: tuple[int, str | None, str]) -> None:
    stage, dtype, version = case
    found = [f for f in lint(config(stage, dtype), make_target(version, "deepspeed")) if f.code == "DS406"]
    word = CASES[case]
    assert [word in (finding.help or "") for finding in found if word] == ([True] if word else [])
    assert len(found) == (1 if word else 0)
