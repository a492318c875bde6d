"""The loss's bytes."""

import pytest
from worlds import LLAMA_3_8B, setting

from dsgen.memory.logits import logits
from dsgen.spec.values import Loss, Training

TOKENS, V, H = 2048, 128256, 4096


def loss(kind: Loss, precision: str = "bf16") -> tuple[int, int]:
    found = logits(setting(LLAMA_3_8B, Training(attention="flash", loss=kind), s=TOKENS, precision=precision))
    return found.forward, found.backward


def test_full() -> None:
    assert loss("full") == (10 * V * TOKENS, 12 * V * TOKENS)


def test_full_in_fp32_makes_no_copy() -> None:
    assert loss("full", "fp32") == (8 * V * TOKENS, 12 * V * TOKENS)


def test_chunked_has_one_chunk_at_a_time() -> None:
    hidden = 2 * H * TOKENS
    assert loss("chunked") == (10 * V * TOKENS // 8 + hidden, 12 * V * TOKENS // 8 + hidden)


def test_fused_linear_makes_the_heads_gradient_in_the_forward_pass() -> None:
    assert loss("fused_linear")[0] == 8 * H * TOKENS + 2 * 2 * V * H


@pytest.mark.parametrize("kind", ["chunked", "fused_linear"])
def test_is_less_than_full(kind: Loss) -> None:
    assert loss(kind)[1] < loss("full")[1]
