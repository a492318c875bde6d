"""Writes dsgen/facts/towers.csv anew from the classes of transformers; run by hand: python tests/shapes/make_towers.py.

Each tower has its published sizes; the decoder's width is one that nothing else has, by which it is recognised.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen3_5

TABLE = Path(__file__).resolve().parents[2] / "dsgen/facts/towers.csv"
WIDTH = 7936
TEXT = {"num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 8, "hidden_size": WIDTH}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 1}
SIGLIP = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
LLAMA4 = {"hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34, "num_attention_heads": 16}
ADAPTER = {"projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 4096}
PIXTRAL = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}


def towers() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Class, where in transformers, and its modules by name."""
    gemma = hf.Gemma3Config(
        vision_config=SIGLIP | {"patch_size": 14, "image_size": 896, "vision_use_head": False}, text_config=TEXT
    )
    yield (
        "Gemma3ForConditionalGeneration",
        "models/siglip/modeling_siglip.py; models/gemma3/modeling_gemma3.py",
        _parts(hf.Gemma3ForConditionalGeneration(gemma).model, "vision_tower"),
    )
    llama = hf.Llama4Config(
        vision_config=LLAMA4 | ADAPTER | {"patch_size": 14, "image_size": 336},
        text_config=TEXT | HEADS | {"num_local_experts": 1, "intermediate_size_mlp": 8},
    )
    yield (
        "Llama4ForConditionalGeneration",
        "models/llama4/modeling_llama4.py",
        _parts(hf.Llama4ForConditionalGeneration(llama), "vision_model"),
    )
    qwen = hf.Qwen2_5_VLConfig(
        vision_config={"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16}
        | {"out_hidden_size": WIDTH},
        text_config=TEXT | HEADS,
    )
    yield (
        "Qwen2_5_VLForConditionalGeneration",
        "models/qwen2_5_vl/modeling_qwen2_5_vl.py",
        {"visual": hf.Qwen2_5_VLForConditionalGeneration(qwen).model.visual},
    )
    mistral = hf.Mistral3Config(
        vision_config=PIXTRAL | {"num_attention_heads": 16, "patch_size": 14, "image_size": 1540, "head_dim": 64},
        text_config=TEXT | HEADS | {"model_type": "mistral"},
    )
    yield (
        "Mistral3ForConditionalGeneration",
        "models/pixtral/modeling_pixtral.py; models/mistral3/modeling_mistral3.py",
        _parts(hf.Mistral3ForConditionalGeneration(mistral).model, "vision_tower"),
    )
    mllama = hf.MllamaConfig(
        vision_config={"image_size": 560},
        text_config=TEXT | HEADS | {"num_hidden_layers": 4, "cross_attention_layers": [3], "pad_token_id": 0},
    )
    yield (
        "MllamaForConditionalGeneration",
        "models/mllama/modeling_mllama.py",
        _parts(hf.MllamaForConditionalGeneration(mllama).model, "vision_model"),
    )
    vision = qwen3_5.Qwen3_5VisionConfig(out_hidden_size=WIDTH)
    yield (
        "Qwen3_5ForConditionalGeneration",
        "models/qwen3_5/modeling_qwen3_5.py",
        {"visual": qwen3_5.Qwen3_5VisionModel(vision)},
    )


def _parts(model: Any, tower: str) -> Mapping[str, Any]:
    return {name: getattr(model, name) for name in (tower, "multi_modal_projector")}


def rows(modules: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """Each tensor's name, without the layer's number, and shape; how often it is there."""
    found: Counter[tuple[str, str]] = Counter()
    for prefix, module in modules.items():
        for name, parameter in module.named_parameters():
            shape = " ".join("text" if size == WIDTH else str(size) for size in parameter.shape)
            found[re.sub(r"(layers|blocks)\.\d+\.", r"\1.{n}.", f"{prefix}.{name}"), shape] += 1
    return found


def main() -> None:
    table: list[list[object]] = [["hf_architecture", "copies", "name", "shape", "source"]]
    with torch.device("meta"):
        for name, where, modules in towers():
            source = f"transformers {hf.__version__} {where}"
            table += [[name, copies, tensor, shape, source] for (tensor, shape), copies in rows(modules).items()]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
