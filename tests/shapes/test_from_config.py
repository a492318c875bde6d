"""Our count of a config.json is that of the Hugging Face class it names, to the last parameter."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dsgen.facts.models import models
from dsgen.shapes.from_config import from_config
from dsgen.shapes.from_row import architecture
from dsgen.shapes.hf_class import KEYS, HfClass, Switch
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.values import Shapes

HELPER = Path(__file__).with_name("count_hf.py")

# What a class needs to be built at all with the few layers used here.
NEEDED: dict[str, dict[str, Any]] = {
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 2]]},
    "DeepseekV2ForCausalLM": {"num_experts_per_tok": 6},
}
SMALL_VOCABULARY = {"vocab_size": 1000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

# Paths through a class that neither its defaults nor its switches take.
PARTICULAR: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon-40b-like": (
        "FalconForCausalLM",
        {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 64, "hidden_size": 512},
    ),
    "falcon-rw-like": ("FalconForCausalLM", {"multi_query": False, "parallel_attn": False, "hidden_size": 568}),
    "opt-350m-like": (
        "OPTForCausalLM",
        {"word_embed_proj_dim": 64, "hidden_size": 128, "ffn_dim": 512, "num_attention_heads": 4}
        | {"do_layer_norm_before": False},
    ),
    "opt-untied-projected": (
        "OPTForCausalLM",
        {"word_embed_proj_dim": 64, "hidden_size": 128, "num_attention_heads": 4, "tie_word_embeddings": False},
    ),
    "deepseek-v2-lite-like": (
        "DeepseekV2ForCausalLM",
        {"q_lora_rank": None, "num_experts_per_tok": 6, "first_k_dense_replace": 1},
    ),
    "deepseek-v3-biased": ("DeepseekV3ForCausalLM", {"attention_bias": True, "n_shared_experts": 2}),
    "qwen-first-layers-dense": ("Qwen3MoeForCausalLM", {"mlp_only_layers": [0, 1], "num_experts": 8}),
    "qwen-every-second-layer": ("Qwen2MoeForCausalLM", {"decoder_sparse_step": 2, "num_experts": 8}),
    "llama-4-every-second-layer": ("Llama4ForCausalLM", {"interleave_moe_layer_step": 2}),
    "llama-wide-heads": ("LlamaForCausalLM", {"head_dim": 256, "num_key_value_heads": 4}),
    "gpt2-own-inner": ("GPT2LMHeadModel", {"n_inner": 1000}),
    "gelu-llama": ("LlamaForCausalLM", {"hidden_act": "gelu"}),
}


def few_layers(name: str) -> dict[str, Any]:
    return {HF_CLASSES[name].keys.get("layers", KEYS["layers"]): 4, **NEEDED.get(name, {})}


def switched(name: str) -> dict[str, Any]:
    """Every true-or-false key that the table knows, turned round."""
    hf_class = HF_CLASSES[name]
    values = [*vars_of(hf_class), *hf_class.extra.values()]
    keys = {value.key for value in values if isinstance(value, Switch)} | {"tie_word_embeddings"}
    turned = {key: not hf_class.defaults.get(key, False) for key in keys}
    return few_layers(name) | SMALL_VOCABULARY | turned


def vars_of(hf_class: HfClass) -> list[Any]:
    fields = ("norms_per_layer", "attention_bias", "mlp_bias", "positional", "qk_norm")
    return [getattr(hf_class, field) for field in fields]


CASES = {
    **{f"{name}-defaults": (name, few_layers(name)) for name in HF_CLASSES},
    **{f"{name}-switched": (name, switched(name)) for name in HF_CLASSES},
    **{case: (name, few_layers(name) | config) for case, (name, config) in PARTICULAR.items()},
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The folder with one config.json per case, as transformers saves it, and its own counts."""
    folder = tmp_path_factory.mktemp("configs")
    order = {
        "folder": str(folder),
        "cases": {case: {"class": name, "config": config} for case, (name, config) in CASES.items()},
    }
    done = subprocess.run(
        [sys.executable, str(HELPER)], input=json.dumps(order), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_every_class_is_counted(counted: tuple[Path, dict[str, int]]) -> None:
    assert len(HF_CLASSES) >= 33
    assert counted[1].keys() == CASES.keys()


@pytest.mark.parametrize("case", CASES)
def test_count_is_that_of_transformers(case: str, counted: tuple[Path, dict[str, int]]) -> None:
    folder, counts = counted
    assert from_config(folder / case).parameters == counts[case]


@pytest.mark.parametrize("name", HF_CLASSES)
def test_depth_by_default_is_that_of_transformers(name: str, tmp_path: Path) -> None:
    # The other cases shorten the model; this one holds the default depth to the published shape's reader.
    shapes = read(tmp_path, {"architectures": [name], **NEEDED.get(name, {})})
    key = HF_CLASSES[name].keys.get("layers", KEYS["layers"])
    assert shapes.architecture.layers == HF_CLASSES[name].defaults[key]


def read(folder: Path, config: dict[str, Any]) -> Shapes:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return from_config(folder)


def test_model_type_stands_in_for_architectures(tmp_path: Path) -> None:
    config = {"model_type": "mistral", "num_hidden_layers": 2}
    assert read(tmp_path, config).architecture.hf_architecture == "MistralForCausalLM"


def test_the_file_itself_may_be_named(tmp_path: Path) -> None:
    read(tmp_path, {"model_type": "llama"})
    shapes = from_config(tmp_path / "config.json")
    assert shapes.parameters == 6_738_415_616
    assert shapes.name == tmp_path.name


def test_sizes_left_to_transformers_are_named(tmp_path: Path) -> None:
    (note,) = read(tmp_path, {"model_type": "llama", "hidden_size": 4096, "vocab_size": 32000}).notes
    assert "leaves out num_hidden_layers 32, num_attention_heads 32, intermediate_size 11008" in note
    full = {"num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008}
    assert read(tmp_path, {"model_type": "llama", "hidden_size": 4096, "vocab_size": 32000, **full}).notes == ()


@pytest.mark.parametrize("key", ["num_experts", "num_local_experts", "n_routed_experts"])
@pytest.mark.parametrize("model_type", ["mixtral", "qwen3_moe", "glm4_moe"])
def test_the_number_of_experts_goes_by_any_of_its_names(model_type: str, key: str, tmp_path: Path) -> None:
    moe = read(tmp_path, {"model_type": model_type, key: 3}).architecture.moe
    assert moe is not None
    assert moe.experts == 3


def test_a_class_with_own_keys_answers_to_the_usual_ones(tmp_path: Path) -> None:
    usual = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "max_position_embeddings": 1024}
    assert read(tmp_path, {"model_type": "gpt2", **usual}).parameters == models()["gpt2-medium"].parameters


def test_the_width_of_an_expert_is_not_that_of_a_dense_layer(tmp_path: Path) -> None:
    arch = read(tmp_path, {"model_type": "llama4_text", "intermediate_size": 4096}).architecture
    assert arch.moe is not None
    assert (arch.moe.intermediate, arch.intermediate) == (4096, 16384)


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_the_checkpoint_type_is_read_under_both_names(key: str, tmp_path: Path) -> None:
    assert read(tmp_path, {"model_type": "llama", key: "bfloat16"}).architecture.native_dtype == "bf16"


def test_a_window_counts_only_where_it_is_used(tmp_path: Path) -> None:
    qwen = {"model_type": "qwen2", "sliding_window": 1024}
    assert read(tmp_path, qwen).architecture.sliding_window is None
    assert read(tmp_path, {**qwen, "use_sliding_window": True}).architecture.sliding_window == 1024
    assert read(tmp_path, {"model_type": "mistral"}).architecture.sliding_window == 4096


# Full-size files as published, against the table's row: (row, config).
PUBLISHED: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu",
        "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "attention_bias": False, "mlp_bias": False,
    },
    "qwen3-30b-a3b": {
        "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048, "intermediate_size": 6144, "vocab_size": 151936,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "hidden_act": "silu", "max_position_embeddings": 40960, "tie_word_embeddings": False, "mlp_only_layers": [],
        "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
        "torch_dtype": "bfloat16", "sliding_window": None, "use_sliding_window": False,
    },
    "gpt2-xl": {
        "architectures": ["GPT2LMHeadModel"], "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
        "vocab_size": 50257, "activation_function": "gelu_new", "torch_dtype": "float32",
    },
    "opt-350m": {
        "architectures": ["OPTForCausalLM"], "hidden_size": 1024, "ffn_dim": 4096, "word_embed_proj_dim": 512,
        "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 50272, "max_position_embeddings": 2048,
        "do_layer_norm_before": False, "activation_function": "relu", "torch_dtype": "float16",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_gives_the_architecture_of_its_row(name: str, tmp_path: Path) -> None:
    shapes = read(tmp_path, PUBLISHED[name])
    row = models()[name]
    assert shapes.parameters == row.parameters
    found, expected = asdict(shapes.architecture), asdict(architecture(row))
    # The row's family names the generation (llama-3.1), which no config.json says.
    assert {**found, "family": ""} == {**expected, "family": ""}
