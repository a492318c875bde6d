"""The backward moment against a plain training step of transformers' Llama, on the CPU."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from worlds import LLAMA_2_7B, setting

from dsgen.memory.activations.saved import Saved
from dsgen.memory.moments import moments
from dsgen.plan import Checkpointing
from dsgen.spec.values import Training

HELPER = Path(__file__).with_name("count_backward.py")
ARCH = replace(LLAMA_2_7B, layers=4, hidden=256, heads=8, kv_heads=4, head_dim=32, intermediate=704, vocab=320)
CONFIG = {
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "intermediate_size": 704,
    "vocab_size": 320,
    "num_hidden_layers": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
CASES = [
    (attention, checkpointing, batch, sequence)
    for attention in ("eager", "sdpa")
    for checkpointing in ("none", "full")
    for batch, sequence in ((2, 256), (8, 64))
]


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    order = {
        str(case): {
            "config": CONFIG,
            "attention": case[0],
            "checkpointing": case[1] == "full",
            "batch": case[2],
            "sequence": case[3],
        }
        for case in CASES
    }
    ran = subprocess.run(
        [sys.executable, str(HELPER)], input=json.dumps(order), capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, int] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_most_in_the_backward_pass(case: tuple[str, str, int, int], counted: dict[str, int]) -> None:
    attention, checkpointing, batch, sequence = case
    decided = setting(
        ARCH,
        Training(attention=attention),  # type: ignore[arg-type]
        s=sequence,
        zero_stage=0,
        world_size=1,
        micro_batch=batch,
        checkpointing=Checkpointing(checkpointing),  # type: ignore[arg-type]
    )
    parts = moments(decided)[1].parts
    predicted = sum(size for part, size in parts.items() if part not in ("master_weights", "optimizer_states"))
    # Never below. Above, because what little lives for one operation of a small block is rounded up.
    assert 0.995 * counted[str(case)] <= predicted <= 1.15 * counted[str(case)]


def test_what_ran_last_is_gone_when_the_rest_runs_backwards() -> None:
    attention, mlp = Saved(10, 0, 5), Saved(4, 0, 2)
    assert attention + mlp == Saved(14, 0, 2)
    assert Saved(10, 0, 8) + mlp == Saved(14, 0, 4)
