"""Bytes between the matrix products against what transformers' own layers read and write, operation by operation.

On the meta device, where torch takes composite operations apart that a GPU runs as one kernel: dropout is off, and an
fp32 softmax of 16-bit scores is a cast more each way (said below).
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made import GPT_2, LLAMA_7B, coded, setting

from dsgen.shapes.values import Architecture
from dsgen.spec.values import Code, Training
from dsgen.steptime.attention import core, passes
from dsgen.steptime.block import block_cost

HELPER = Path(__file__).with_name("count_traffic.py")
H, HEADS, KV, D, WIDE, V, TOKENS = 512, 8, 2, 64, 1408, 1000, 256

LLAMA = replace(LLAMA_7B, layers=2, hidden=H, heads=HEADS, kv_heads=KV, head_dim=D, intermediate=WIDE, vocab=V)
GPT = replace(
    GPT_2,
    layers=2,
    hidden=H,
    heads=HEADS,
    kv_heads=HEADS,
    head_dim=D,
    intermediate=4 * H,
    vocab=V,
    max_positions=TOKENS,
)
SIZES: dict[str, Any] = {
    "hidden_size": H,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": D,
    "intermediate_size": WIDE,
    "vocab_size": V,
    "max_position_embeddings": TOKENS,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GPT_SIZES: dict[str, Any] = {
    "n_embd": H,
    "n_head": HEADS,
    "vocab_size": V,
    "n_positions": TOKENS,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "resid_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
}
CASES: dict[str, tuple[Architecture, str, dict[str, Any], str]] = {
    "llama": (LLAMA, "LlamaForCausalLM", SIZES, "bfloat16"),
    "llama, all heads": (
        replace(LLAMA, kv_heads=HEADS),
        "LlamaForCausalLM",
        {**SIZES, "num_key_value_heads": HEADS},
        "bfloat16",
    ),
    "llama, fp32": (LLAMA, "LlamaForCausalLM", SIZES, "float32"),
    "qwen3": (replace(LLAMA, qk_norm="head"), "Qwen3ForCausalLM", SIZES, "bfloat16"),
    "gpt2": (GPT, "GPT2LMHeadModel", GPT_SIZES, "bfloat16"),
}


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, list[float]]]:
    asked = {
        f"{name}, {attention}": {
            "class": model,
            "config": config,
            "dtype": dtype,
            "attention": attention,
            "tokens": TOKENS,
            "frozen": False,
        }
        for name, (_, model, config, dtype) in CASES.items()
        for attention in ("none", "eager")
    }
    asked["llama, frozen"] = {**asked["llama, none"], "frozen": True}
    done = subprocess.run(
        [sys.executable, str(HELPER)], input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=300
    )
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return found


def predicted(arch: Architecture, dtype: str, attention: str) -> tuple[list[float], list[float]]:
    """Bytes per token of what lies between the products, and the kernels of it, forwards and backwards."""
    code = Code(dropout=False)
    training = Training(attention="flash" if attention == "none" else "eager", code=code)
    precision = "fp32" if dtype == "float32" else "bf16"
    # Many tokens, so that no kernel is as short as the shortest.
    here = setting(arch, training=training, precision=precision, micro_batch=4096, length=TOKENS)
    cost = block_cost(here, here.kinds[0][0])
    between = cost.activation + cost.rest
    rate = here.machine.memory / here.tokens
    return (
        [between.forward * rate, between.backward * rate],
        [between.forward_launches, between.backward_launches],
    )


@pytest.mark.parametrize("name", CASES)
def test_what_lies_between_the_products(name: str, counted: dict[str, dict[str, list[float]]]) -> None:
    arch, _, _, dtype = CASES[name]
    moved, kernels = predicted(arch, dtype, "none")
    found = counted[f"{name}, none"]
    # What is left is smaller than a feature a token: statistics of norms, cosines of the embedding.
    assert moved == pytest.approx(found["layer"], rel=0.015)
    if dtype == "bfloat16":
        assert kernels == found["kernels"]


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_scores_of_eager_attention(name: str, counted: dict[str, dict[str, list[float]]]) -> None:
    """Llama takes its softmax in fp32: on a GPU the kernel reads 16 bits, here a cast of 8 bytes more each way."""
    arch, _, _, dtype = CASES[name]
    flat, eager = counted[f"{name}, none"]["layer"], counted[f"{name}, eager"]["layer"]
    here = setting(arch, training=coded(dropout=False), micro_batch=4096, length=TOKENS)
    here = replace(here, training=replace(here.training, attention="eager"))
    scores = HEADS * TOKENS
    cast = 8 * scores if name == "llama" else 0
    assert dtype == "bfloat16"
    forward, backward, _ = passes(here)
    copies = [2 * 2 * H + (2 * 2 * (KV * D + H) if name == "llama" else 0), 4 * 2 * H]
    assert forward * scores + cast + copies[0] == pytest.approx(eager[0] - flat[0], rel=0.02)
    assert backward * scores + cast + copies[1] == pytest.approx(eager[1] - flat[1], rel=0.06)
    assert core(here).forward > forward * scores * here.tokens / here.machine.memory


def test_frozen_norms_save_the_gradient_of_their_weight(counted: dict[str, dict[str, list[float]]]) -> None:
    """8 bytes a feature of both norms, and the seven products of weight gradients."""
    trained, frozen = counted["llama, none"], counted["llama, frozen"]
    assert trained["layer"][1] - frozen["layer"][1] == pytest.approx(2 * 8 * H, rel=0.01)
    assert [trained["products"][1], frozen["products"][1]] == [14, 7]
