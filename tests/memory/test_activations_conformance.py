"""The formulas against what autograd really keeps of transformers' own layers, on the CPU.

Sequence, widths and heads are small but all different, so that no two terms can stand in for each other.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worlds import LLAMA_2_7B

from dsgen.memory.activations.block import block
from dsgen.memory.activations.kernels import kernels_of
from dsgen.memory.activations.saved import Layer, trained_layers
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Mla, Moe

HELPER = Path(__file__).with_name("count_saved.py")
H, HEADS, KV, D, WIDE, S, B = 128, 4, 2, 32, 352, 64, 2

BASE = replace(LLAMA_2_7B, layers=2, hidden=H, heads=HEADS, kv_heads=KV, head_dim=D, intermediate=WIDE, vocab=100)
GPT = replace(
    BASE, kv_heads=HEADS, mlp="gelu", norm="layernorm", attention_bias="all", mlp_bias=True, norms_per_layer=2
)
CONFIG: dict[str, Any] = {
    "hidden_size": H,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": D,
    "intermediate_size": WIDE,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
ALL_HEADS = {"num_key_value_heads": HEADS}
NO_DROPOUT = {"resid_pdrop": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0}
MLA = Mla(q_lora_rank=40, kv_lora_rank=48, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32)
LATENT = {
    **ALL_HEADS,
    "q_lora_rank": 40,
    "kv_lora_rank": 48,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "head_dim": 16,  # of the rotary embedding
    "v_head_dim": 32,
    "first_k_dense_replace": 9,
}

# Name: architecture, base model class, config beside CONFIG, attention kernels, largest relative error.
CASES: dict[str, tuple[Architecture, str, dict[str, Any], tuple[str, ...], float]] = {
    "llama": (BASE, "LlamaModel", {}, ("eager", "sdpa"), 0),
    "qwen3": (replace(BASE, qk_norm="head"), "Qwen3Model", {}, ("eager", "sdpa"), 0),
    "olmo2": (
        replace(BASE, qk_norm="full", hf_architecture="Olmo2ForCausalLM"),
        "Olmo2Model",
        {},
        ("eager", "sdpa"),
        0,
    ),
    "gemma2": (
        replace(BASE, mlp="geglu", norms_per_layer=4, hf_architecture="Gemma2ForCausalLM"),
        "Gemma2Model",
        {},
        ("eager",),
        0.003,
    ),
    "phi3": (replace(BASE, hf_architecture="Phi3ForCausalLM"), "Phi3Model", {}, ("eager", "sdpa"), 0),
    # Indices of the routing are not counted.
    "mixtral": (
        replace(BASE, moe=Moe(experts=4, top_k=2, intermediate=WIDE)),
        "MixtralModel",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        ("eager", "sdpa"),
        0.01,
    ),
    # On the CPU LayerNorm keeps its statistics in the input's type, on a GPU in fp32: 4 bytes a norm.
    "gpt2": (
        replace(GPT, intermediate=4 * H, hf_architecture="GPT2LMHeadModel"),
        "GPT2Model",
        {**NO_DROPOUT, "n_inner": 4 * H},
        ("eager", "sdpa"),
        0.002,
    ),
    "gpt-neox": (
        replace(GPT, hf_architecture="GPTNeoXForCausalLM"),
        "GPTNeoXModel",
        {"hidden_dropout": 0.0, "attention_dropout": 0.0},
        ("eager", "sdpa"),
        0.003,
    ),
    "phi": (
        replace(GPT, norms_per_layer=1, hf_architecture="PhiForCausalLM"),
        "PhiModel",
        {**ALL_HEADS, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_dropout": 0.0},
        ("eager", "sdpa"),
        0.002,
    ),
    "starcoder2": (
        replace(GPT, kv_heads=KV),
        "Starcoder2Model",
        {"residual_dropout": 0.0, "embedding_dropout": 0.0, "attention_dropout": 0.0},
        ("eager", "sdpa"),
        0.003,
    ),
    # torch's CPU kernel takes no values narrower than the keys, so only eager attention compares.
    "deepseek-v3": (replace(BASE, kv_heads=HEADS, mla=MLA), "DeepseekV3Model", LATENT, ("eager",), 0.005),
}
DTYPES = {"bfloat16": 2, "float32": 4}
COMBINATIONS = [(name, kernel, dtype) for name, case in CASES.items() for kernel in case[3] for dtype in DTYPES]


@pytest.fixture(scope="module")
def counted() -> dict[str, float]:
    order = {
        f"{name} {kernel} {dtype}": {
            "class": CASES[name][1],
            "config": CONFIG | CASES[name][2],
            "attention": kernel,
            "dtype": dtype,
            "hidden": H,
            "batch": B,
            "sequence": S,
        }
        for name, kernel, dtype in COMBINATIONS
    }
    ran = subprocess.run(
        [sys.executable, str(HELPER)], input=json.dumps(order), capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, float] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(("name", "kernel", "dtype"), COMBINATIONS)
def test_transformers_layer(name: str, kernel: str, dtype: str, counted: dict[str, float]) -> None:
    arch, tolerance = CASES[name][0], CASES[name][4]
    last = build(name, arch).blocks[-1]
    layer = Layer(
        arch=arch,
        width=DTYPES[dtype],
        attention=kernel,  # type: ignore[arg-type]
        sequence_length=S,
        kernels=replace(kernels_of(arch), dropout=False),
        trained=trained_layers(last),
        lora_rank=0,
        lora_dropout=False,
    )
    predicted = block(layer, moe=last.is_moe).kept
    assert predicted == pytest.approx(counted[f"{name} {kernel} {dtype}"], rel=tolerance, abs=0.5)
