"""Architectures of which every size is stated, for tests of more than one room."""

from dsgen.shapes.values import Architecture

LLAMA_2_7B = Architecture(
    family="llama-2",
    hf_architecture="LlamaForCausalLM",
    layer_class="LlamaDecoderLayer",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=32,
    head_dim=128,
    intermediate=11008,
    vocab=32000,
    tied=False,
)
GPT_2_XL = Architecture(
    family="gpt2",
    hf_architecture="GPT2LMHeadModel",
    layer_class="GPT2Block",
    layers=48,
    hidden=1600,
    heads=25,
    kv_heads=25,
    head_dim=64,
    intermediate=6400,
    vocab=50257,
    tied=True,
    mlp="gelu",
    norm="layernorm",
    attention_bias="all",
    mlp_bias=True,
    positional="learned",
    max_positions=1024,
)
