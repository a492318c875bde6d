"""Reads a JSON list of jobs (name, source, model_type, config) from standard input; gives the Hugging Face class and
the generated decoder the same weights and the same tokens; prints the largest difference of their logits."""

import json
import re
import sys
import types
from dataclasses import fields, replace

import torch
from transformers import AutoConfig, AutoModelForCausalLM

LENGTH = 48  # longer than the tiny window

# Hugging Face's names to Llama's; the first that matches each part wins, in this order.
RENAMES = [
    (r"^(model\.decoder|model|transformer|gpt_neox)\.", ""),
    (r"^(wte|word_embeddings|embed_in)\.", "embed_tokens."),
    (r"^wpe\.", "embed_positions."),
    (r"^word_embeddings_layernorm\.", "embed_layernorm."),
    (r"^(ln_f|final_layer_norm|final_layernorm|norm_f)\.", "norm."),
    (r"^embed_out\.", "lm_head."),
    (r"^(h|blocks)\.", "layers."),
    (r"\.(ln_1|norm_1|ln_attn|self_attn_layer_norm)\.", ".input_layernorm."),
    (r"\.post_attention_layernorm\.(?=.*GLM4)", ".pre_feedforward_layernorm."),
    (r"\.post_self_attn_layernorm\.", ".post_attention_layernorm."),
    (r"\.post_mlp_layernorm\.", ".post_feedforward_layernorm."),
    (r"\.(ln_2|norm_2|ln_mlp|final_layer_norm)\.", ".post_attention_layernorm."),
    (r"\.(attn\.attention|attn|attention|self_attention)\.", ".self_attn."),
    (r"\.self_attn\.(c_proj|out_proj|dense)\.", ".self_attn.o_proj."),
    (r"\.self_attn\.(c_attn|query_key_value|Wqkv|qkv_proj)\.", ".self_attn.qkv."),
    (r"\.ffn\.", ".mlp."),
    (r"\.(mlp\.c_fc|mlp\.dense_h_to_4h|mlp\.fc_in|mlp\.fc1|fc1)\.", ".mlp.up_proj."),
    (r"\.(mlp\.c_proj|mlp\.dense_4h_to_h|mlp\.fc_out|mlp\.fc2|fc2)\.", ".mlp.down_proj."),
    (r"\.mlp\.shared_expert\.", ".mlp.shared_experts."),
]


def renamed(name: str, model_type: str) -> str:
    tag = " GLM4" if model_type == "glm4" else ""
    name += tag
    for pattern, instead in RENAMES:
        name = re.sub(pattern, instead, name)
    return name.removesuffix(tag)


def split_qkv(tensor: torch.Tensor, model_type: str, config) -> list[torch.Tensor]:
    """Query, key and value out of one fused projection; the families order its rows differently."""
    heads, kv_heads, width = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    grouped = model_type in ("gpt_neox", "bloom") or (model_type == "falcon" and kv_heads > 1)
    if not grouped:
        return list(tensor.split([heads * width, kv_heads * width, kv_heads * width]))
    per_group = heads // kv_heads
    rows = tensor.unflatten(0, (kv_heads, per_group + 2, width))
    return [part.flatten(0, 2) for part in rows.split([per_group, 1, 1], dim=1)]


def converted(model, model_type: str, config) -> dict[str, torch.Tensor]:
    found = {}
    for original, tensor in model.named_parameters():
        name = renamed(original, model_type)
        if model_type == "gpt2" and re.search(r"(c_attn|c_proj|c_fc)\.weight", original):
            tensor = tensor.t()  # Conv1D stores (in, out)
        if ".qkv." in name:
            parts = split_qkv(tensor, model_type, config)
            found |= {name.replace(".qkv.", f".{key}_proj."): part for key, part in zip("qkv", parts, strict=True)}
        elif "gate_up_proj" in name:
            gate, up = tensor.chunk(2, dim=-2)
            found |= {name.replace("gate_up_proj", "gate_proj"): gate, name.replace("gate_up_proj", "up_proj"): up}
        else:
            found[name] = tensor
    return found


def numbers_of(config) -> dict[str, float]:
    """Epsilon and RoPE base, which change no shape."""
    keys = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
    epsilon = next((getattr(config, key) for key in keys if getattr(config, key, None) is not None), 1e-5)
    rope = getattr(config, "rope_parameters", None) or {}
    return {"norm_eps": epsilon, "rope_theta": rope.get("rope_theta", 10000.0)}


def difference(job: dict) -> float:
    module = types.ModuleType("generated")
    sys.modules["generated"] = module
    exec(compile(job["source"], job["name"], "exec"), module.__dict__)
    torch.manual_seed(0)
    hf_config = AutoConfig.for_model(job["model_type"], **job["config"], use_cache=False)
    theirs = AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():  # norms and biases, too: at their usual start they hide mistakes
            parameter.add_(0.1 * torch.randn_like(parameter))
    config = module.Config.tiny()
    known = {field.name for field in fields(config)}
    config = replace(config, **{key: value for key, value in numbers_of(hf_config).items() if key in known})
    if job["model_type"] in ("bloom", "mpt"):  # these classes have no key for the width of their MLP
        config = replace(config, intermediate_size=4 * config.hidden_size)
    ours = module.Decoder(config).eval()
    weights = converted(theirs, job["model_type"], config)
    wanted = dict(ours.named_parameters())
    assert set(weights) == set(wanted), (job["name"], sorted(set(weights) ^ set(wanted)))
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(weights[name])
        tokens = torch.randint(config.vocab_size, (2, LENGTH))
        logits = theirs(input_ids=tokens).logits
        loss = theirs(input_ids=tokens, labels=tokens).loss
        assert torch.allclose(ours(tokens, tokens), loss, rtol=1e-4), job["name"]
        return ((ours(tokens) - logits).abs().max() / logits.abs().max()).item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("\n" + json.dumps({job["name"]: difference(job) for job in json.load(sys.stdin)}))  # noqa: T201
