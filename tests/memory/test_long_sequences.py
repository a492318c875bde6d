"""What training of very long sequences adds: tiles of the MLP, heads in place of positions, kernels that keep less."""

from dataclasses import replace

import pytest
from worlds import LLAMA_3_8B, setting

from dsgen.memory.activations.attention import attention
from dsgen.memory.activations.checkpointed import _layer, activations
from dsgen.memory.activations.mlp import mlp
from dsgen.memory.activations.saved import Layer
from dsgen.plan import Checkpointing
from dsgen.spec.values import Code, Training

H, WIDE, Q, K = 4096, 14336, 4096, 1024


def layer(*fused: str, s: int = 8 * H, ulysses: int = 1) -> Layer:
    """Bytes per token, in 16 bit."""
    training = Training(attention="flash", code=Code(fused=frozenset(fused)))
    found = setting(LLAMA_3_8B, training, s=s, ulysses=ulysses)
    return _layer(found, found.shapes.blocks[0])


def test_one_kernel_for_activation_and_product() -> None:
    """Liger keeps gate, up and product, and writes two gradients over them; torch keeps the activated gate, too."""
    assert mlp(layer(), moe=False).kept == 2 * 4 * WIDE
    assert mlp(layer(), moe=False).transient == 2 * (2 * WIDE + H)
    assert mlp(layer("mlp"), moe=False).kept == 2 * 3 * WIDE
    assert mlp(layer("mlp"), moe=False).transient == 2 * H


def test_a_tiled_mlp_keeps_its_input_alone() -> None:
    """The input is the norm's output. Backwards there are its gradient, that of the output, and one tile of eight."""
    tiled = mlp(layer("tiled_mlp"), moe=False)
    assert tiled.kept == 0
    assert tiled.transient == 2 * 2 * H + (2 * 4 * WIDE + 2 * (2 * WIDE + H)) / 8
    assert layer("tiled_mlp").tiles == 8
    # Eight ranks have an eighth of the sequence each, one tile.
    assert layer("tiled_mlp", ulysses=8).tiles == 1


def test_long_sequences_in_tiles_take_little_more_than_half() -> None:
    def extra(s: int, *fused: str) -> int:
        training = Training(attention="flash", code=Code(fused=frozenset(fused)))
        return activations(setting(LLAMA_3_8B, training, s=s, checkpointing=Checkpointing("full"))).layers[0].extra

    assert extra(64 * H) == 2 * extra(32 * H)
    assert extra(64 * H, "tiled_mlp") < 0.55 * extra(64 * H)


@pytest.mark.parametrize(("ranks", "copies"), [(2, 1), (8, 1), (32, 4)])
def test_ulysses_gives_heads_of_keys_to_several_ranks(ranks: int, copies: int) -> None:
    """8 heads of keys and values on 32 ranks: each rank has one, four times its share
    (ulysses_sp.py:kv_replication_factor); and what comes back of the core is a tensor of its own."""
    kept = attention(layer(ulysses=ranks)).kept
    statistics = 4 * 32
    assert kept == 2 * (Q + 2 * K * copies) + 2 * Q + statistics + 2 * Q
    assert attention(layer()).kept == 2 * (Q + 2 * K) + 2 * Q + statistics


def test_flash_sums_the_gradient_of_the_query_in_fp32() -> None:
    """dq, dk, dv and the output's gradient in 16 bit, dq once more in fp32."""
    assert attention(layer()).transient == 2 * 4 * Q + 4 * Q
    eager = replace(layer(), attention="sdpa")
    assert attention(eager).transient == 2 * 4 * Q
