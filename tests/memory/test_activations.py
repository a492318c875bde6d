"""Activations against published formulas and against sums written out tensor by tensor."""

from dataclasses import replace

import pytest
from worlds import GPT_7B, LLAMA_2_7B, LLAMA_3_8B, setting, shapes_of

from dsgen.memory.activations.block import block
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.activations.kernels import Kernels, kernels_of
from dsgen.memory.activations.saved import Layer, Saved, trained_layers
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Architecture, Mla, Moe
from dsgen.spec.values import Attention, Method, Training

# The paper's model: dropout, softmax in 16 bit, GELU in one kernel.
MEGATRON = Kernels(dropout=True, softmax_in_fp32=False)


def one_block(
    arch: Architecture,
    attention: Attention = "flash",
    s: int = 1024,
    kernels: Kernels | None = None,
    training: Training | None = None,
    width: int = 2,
) -> Saved:
    shapes = shapes_of(arch, training)
    method = (training or Training()).method
    last = shapes.blocks[-1]
    layer = Layer(
        arch=arch,
        width=width,
        attention=attention,
        sequence_length=s,
        kernels=kernels or kernels_of(arch),
        trained=trained_layers(last),
        lora_rank=method.rank if method.type == "lora" else 0,
        lora_dropout=method.dropout > 0,
    )
    return block(layer, moe=last.is_moe)


def test_korthikanti() -> None:
    """arXiv 2205.05198, equation 1: s b h (34 + 5 a s / h), and 8 bytes for each LayerNorm's statistics."""
    h, a, s = 4096, 32, 1024
    assert one_block(GPT_7B, "eager", s, MEGATRON).kept == h * (34 + 5 * a * s / h) + 2 * 8


def test_korthikanti_without_dropout() -> None:
    """Two masks of h less, and of the 5 a s only the softmax's output is left: 2 a s."""
    h, a, s = 4096, 32, 1024
    assert one_block(GPT_7B, "eager", s, replace(MEGATRON, dropout=False)).kept == h * (32 + 2 * a * s / h) + 2 * 8


def test_selective_recomputation_of_the_core() -> None:
    """arXiv 2205.05198, section 5: without the attention core 34 s b h are left; flash adds its log-sum-exp, 4 a."""
    h, a = 4096, 32
    assert one_block(GPT_7B, "flash", kernels=MEGATRON).kept == 34 * h + 4 * a + 2 * 8


def test_llama_with_grouped_queries_and_flash() -> None:
    """Llama-3-8B, bytes a token, tensor by tensor: h 4096, q 4096, k = v 1024, i 14336, 32 heads."""
    saved = {
        "input norm: fp32 input": 4 * 4096,
        "input norm: 1/rms": 4,
        "input norm: normalised": 2 * 4096,
        "input of q, k, v": 2 * 4096,
        "q rotated": 2 * 4096,
        "k rotated": 2 * 1024,
        "v": 2 * 1024,
        "attention output": 2 * 4096,
        "log-sum-exp": 4 * 32,
        "second norm: fp32 input": 4 * 4096,
        "second norm: 1/rms": 4,
        "second norm: normalised": 2 * 4096,
        "input of gate and up": 2 * 4096,
        "gate": 2 * 14336,
        "silu(gate)": 2 * 14336,
        "up": 2 * 14336,
        "product": 2 * 14336,
    }
    assert one_block(LLAMA_3_8B).kept == sum(saved.values()) == 200_840


def test_eager_llama_keeps_probabilities_twice_and_repeated_keys() -> None:
    """transformers' eager_attention_forward: softmax in fp32 (4 a s) and in 16 bit (2 a s), k and v repeated."""
    flash = one_block(LLAMA_3_8B, s=2048).kept
    eager = one_block(LLAMA_3_8B, "eager", s=2048).kept
    assert eager - flash == 6 * 32 * 2048 + 2 * 2 * (4096 - 1024) - 4 * 32


def test_fp32_doubles_what_is_not_fp32_anyway() -> None:
    h, q, k, i = 4096, 4096, 1024, 14336
    assert (
        one_block(LLAMA_3_8B, width=4).kept == 2 * (4 * h + 4 + 4 * h + 4 * h) + 4 * (2 * q + 2 * k) + 4 * 32 + 16 * i
    )


def test_lora_on_attention_keeps_less() -> None:
    """q, k, v, o adapted: norm weights and the MLP's matrices are frozen, so the norms' normalised values, the
    MLP's input and the product are not kept; each adapter keeps its inner r = 16."""
    h, i = 4096, 14336
    method = Method(type="lora", rank=16, targets=("q_proj", "k_proj", "v_proj", "o_proj"))
    lora = one_block(LLAMA_3_8B, training=Training(method=method)).kept
    full = one_block(LLAMA_3_8B).kept
    assert full - lora == 2 * (2 * h) + 2 * h + 2 * i - 4 * 2 * 16


def test_lora_with_dropout_keeps_each_adapters_own_input() -> None:
    method = Method(type="lora", rank=16, targets=("q_proj", "v_proj"))
    without = one_block(LLAMA_3_8B, training=Training(method=method)).kept
    with_dropout = one_block(LLAMA_3_8B, training=Training(method=replace(method, dropout=0.05))).kept
    # Dropped input (2 h) and mask (h) for both, instead of the shared input (2 h).
    assert with_dropout - without == 2 * 3 * 4096 - 2 * 4096


def test_mixture_of_experts() -> None:
    """Mixtral-8x7B: two experts of i = 14336 a token in place of one MLP, their inputs and outputs, the router."""
    arch = replace(LLAMA_3_8B, moe=Moe(experts=8, top_k=2, intermediate=14336))
    h, i = 4096, 14336
    dense = one_block(LLAMA_3_8B).kept
    assert one_block(arch).kept - dense == 4 * 2 * i + 2 * (2 * h + 2 * h) + 8 * 8


def test_latent_attention() -> None:
    """DeepSeek-V2-Lite's attention: h 2048, 16 heads of 128 + 64 and 128, r_kv 512, q projected directly."""
    mla = Mla(q_lora_rank=0, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    arch = replace(LLAMA_2_7B, hidden=2048, heads=16, kv_heads=16, intermediate=10944, mla=mla)
    saved = {
        "norms with outputs": 2 * (8 * 2048 + 4),
        "latent norm with output": 8 * 512 + 4,
        "q and k": 2 * 2 * 16 * 192,
        "keys and values rebuilt": 2 * 16 * 256,
        "output": 2 * 16 * 128,
        "log-sum-exp": 4 * 16,
        "mlp": 8 * 10944,
    }
    assert one_block(arch).kept == sum(saved.values())


def test_parallel_block_shares_one_norm() -> None:
    arch = replace(GPT_7B, norms_per_layer=1)
    # One LayerNorm's input and statistics less, and one shared output.
    assert one_block(GPT_7B).kept - one_block(arch).kept == 2 * 2 * 4096 + 8


@pytest.mark.parametrize(("kind", "every"), [("none", 1), ("full", 1), ("selective", 1), ("every", 2), ("every", 3)])
def test_checkpointing(kind: str, every: int) -> None:
    tokens, h, block_bytes = 2048, 4096, one_block(LLAMA_3_8B).kept
    layers = activations(setting(LLAMA_3_8B, checkpointing=Checkpointing(kind, every)))  # type: ignore[arg-type]
    none, full = block_bytes * tokens, 2 * h * tokens
    # Kept by selective: input, q, k, v, o, gate, up, down, attention with its log-sum-exp.
    selective = (2 * (h + 4096 + 2 * 1024 + h + 2 * 14336 + h + 4096) + 4 * 32) * tokens
    checkpointed = -(-32 // every)
    expected = {
        "none": 32 * none,
        "full": 32 * full,
        "selective": 32 * selective,
        "every": checkpointed * full + (32 - checkpointed) * none,
    }[kind]
    assert layers.kept == expected


def test_checkpointing_recomputes_one_block() -> None:
    tokens = 2048
    full = activations(setting(LLAMA_3_8B, checkpointing=Checkpointing("full"))).layers[0]
    none = activations(setting(LLAMA_3_8B, checkpointing=Checkpointing("none"))).layers[0]
    assert full.extra - none.extra == one_block(LLAMA_3_8B).kept * tokens


def test_equal_layers_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from dsgen.memory.activations import checkpointed

    calls: list[int] = []
    real = checkpointed.block
    monkeypatch.setattr(checkpointed, "block", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs))
    activations(setting(LLAMA_3_8B))
    assert len(calls) == 1
