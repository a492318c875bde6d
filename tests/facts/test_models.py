"""The model table: every row typed, every name found."""

import pytest

from dsgen.facts.models import Model, find_model, models, nearest_models
from dsgen.facts.tables import rows


def test_every_row_is_read() -> None:
    assert len(models()) == len(rows("models")) >= 177


@pytest.mark.parametrize(
    "name", ["llama-2-7b", "LLAMA-2-7B", "meta-llama/Llama-2-7b-hf", "META-LLAMA/llama-2-7b-hf", "Llama-2-7b-hf"]
)
def test_a_model_is_found_by_name_id_or_id_without_owner(name: str) -> None:
    model = find_model(name)
    assert model is not None
    assert model.hf_id == "meta-llama/Llama-2-7b-hf"
    assert model.parameters == 6_738_415_616


def test_every_name_and_id_leads_to_its_own_row() -> None:
    for model in models().values():
        assert find_model(model.name) is model
        assert find_model(model.hf_id) is model


def test_an_unknown_name_gets_suggestions_each_once() -> None:
    assert find_model("llama-2-7") is None
    suggested = nearest_models("llama-2-7")
    assert suggested[0] == "llama-2-7b"
    assert len(suggested) == len(set(suggested))
    assert nearest_models("zzzzzzzz") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpt2", "decoder"),
        ("deepseek-v3", "decoder"),
        ("bert-base-uncased", "encoder"),
        ("modernbert-base", "encoder"),
        ("deberta-v3-base", "encoder"),
        ("t5-small", "encoder-decoder"),
        ("whisper-large-v3", "encoder-decoder"),
        ("vit-base-patch16-224", "vision"),
        ("gemma-3-4b", "vision-language"),
        ("llama-4-scout", "vision-language"),
        ("llama-3.2-11b-vision", "hybrid"),
        ("qwen3-next-80b-a3b", "hybrid"),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert models()[name].kind == kind


def test_cells_of_pairs_and_switches_are_typed() -> None:
    v3: Model = models()["deepseek-v3"]
    assert v3.mla == {
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    }
    assert (v3.moe_experts, v3.moe_top_k, v3.moe_shared, v3.moe_first_dense_layers) == (256, 8, 1, 3)
    assert models()["opt-350m"].extra == {"pos_offset": "2", "embed_proj": "512", "no_final_norm": "1"}
    assert models()["gpt2"].tied
    assert not models()["llama-2-7b"].tied
