"""A config.json that cannot be read, or not yet, ends in one message with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsgen.errors import InputError, Place
from dsgen.shapes.config_file import LARGEST_FILE
from dsgen.shapes.from_config import from_config


def problem(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        from_config(path, Place("spec.yaml", 1, 8))
    assert caught.value.exit_code == 2
    assert len(caught.value.problems) == 1
    return str(caught.value).replace(str(path), "FOLDER")


def written(folder: Path, text: str | bytes) -> str:
    (folder / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    return problem(folder)


def test_no_such_folder_is_reported_where_it_was_written(tmp_path: Path) -> None:
    message = problem(tmp_path / "nowhere")
    assert message.startswith("spec.yaml:1:8: cannot read FOLDER: No such file or directory")
    assert "config.json" in message


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert problem(tmp_path).startswith("spec.yaml:1:8: cannot read FOLDER/config.json: No such file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n  "b": }', "FOLDER/config.json:2:8: not JSON: Expecting value"),
        ("", "FOLDER/config.json:1:1: not JSON: Expecting value"),
        ("[1, 2]", "FOLDER/config.json:1:1: holds [1, 2], not an object"),
        (b'{\n"a": "\xff"}', "FOLDER/config.json:2: not UTF-8"),
        ("[" * 100_000, "FOLDER/config.json: nested too deeply"),
        (
            '{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}",
            "FOLDER/config.json: holds a number that is too",
        ),
        ("{" + " " * LARGEST_FILE + "}", f"FOLDER/config.json: larger than {LARGEST_FILE} bytes"),
        ("{}", "FOLDER/config.json: neither architectures nor model_type says what model this is"),
    ],
    ids=["syntax", "empty", "list", "not-utf-8", "deep", "long-number", "large", "empty-object"],
)
def test_malformed_files(text: str | bytes, message: str, tmp_path: Path) -> None:
    assert written(tmp_path, text).startswith(message)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"architectures": ["LlamaForCausalLn"]},
            "LlamaForCausalLn is not supported\n  help: nearest: LlamaForCausalLM",
        ),
        ({"architectures": ["T5ForConditionalGeneration"]}, "T5ForConditionalGeneration is not supported yet"),
        ({"model_type": "lama"}, "model_type lama is not supported\n  help: nearest: llama"),
        ({"model_type": 3}, "model_type is 3\n  help: write a string"),
        ({"architectures": "LlamaForCausalLM", "model_type": None}, "neither architectures nor model_type"),
        ({"model_type": "llama", "hidden_size": "4096"}, 'hidden_size is "4096"\n  help: write a whole number'),
        ({"model_type": "llama", "hidden_size": 4096.0}, "hidden_size is 4096.0"),
        ({"model_type": "llama", "hidden_size": True}, "hidden_size is true"),
        ({"model_type": "llama", "hidden_size": 0}, "hidden_size is 0"),
        ({"model_type": "llama", "hidden_size": -1}, "hidden_size is -1"),
        ({"model_type": "llama", "num_hidden_layers": 10**8}, "100000000 layers are more than 10000"),
        (
            {"model_type": "llama", "tie_word_embeddings": "no"},
            'tie_word_embeddings is "no"\n  help: write true or false',
        ),
        ({"model_type": "llama", "num_attention_heads": 33}, "33 heads do not divide the width 4096"),
        ({"model_type": "llama", "num_key_value_heads": 5}, "5 kv heads do not divide the 32 heads"),
        ({"model_type": "llama", "hidden_act": "relu2"}, "activation relu2 is not supported yet"),
        ({"model_type": "llama", "hidden_act": None}, "activation null is not supported yet"),
        ({"model_type": "deepseek_v2"}, "num_experts_per_tok is missing"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [3]}, "dense layers other than the first ones"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": "0"}, "mlp_only_layers is"),
        ({"model_type": "phi", "qk_layernorm": True}, "qk_layernorm is not supported yet"),
        ({"model_type": "mpt", "attn_config": {"alibi": False}}, "MPT without ALiBi"),
    ],
)
def test_values_that_cannot_be(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert message in written(tmp_path, json.dumps(config))


def test_a_bad_value_is_reported_where_it_stands(tmp_path: Path) -> None:
    message = written(tmp_path, '{\n  "model_type": "llama",\n  "hidden_size": "wide"\n}\n')
    assert message.startswith("FOLDER/config.json:3:18: hidden_size")


def test_no_place_is_guessed_where_a_key_stands_twice(tmp_path: Path) -> None:
    message = written(tmp_path, '{"other": {"hidden_size": 1}, "model_type": "llama", "hidden_size": "wide"}')
    assert message.startswith("FOLDER/config.json: hidden_size")
