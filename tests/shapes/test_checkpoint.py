"""Weights beside a config.json: their headers alone, held against what it describes; whatever the bytes say."""

import json
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsgen.errors import InputError
from dsgen.shapes.from_config import from_config
from dsgen.shapes.safetensors_header import Stored, header_of
from dsgen.shapes.values import Shapes

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
WIDTHS = {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}


def tensors(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    found = {f"model.layers.{at}.{t.name}": t.shape for at, block in enumerate(shapes.blocks) for t in block.tensors}
    return found | {
        f"model.{tensor.name}".replace("model.lm_head", "lm_head"): tensor.shape for tensor in shapes.outside
    }


def safetensors(shapes: dict[str, tuple[int, ...]], dtype: str = "BF16") -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        size = WIDTHS[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    return framed(json.dumps(header).encode()) + bytes(end)


def framed(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


def folder(tmp_path: Path, **config: Any) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
    return tmp_path


@pytest.fixture
def described(tmp_path: Path) -> dict[str, tuple[int, ...]]:
    return tensors(from_config(folder(tmp_path)))


def test_equal_weights_need_no_word(tmp_path: Path, described: dict[str, tuple[int, ...]]) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(described))
    made = from_config(folder(tmp_path))
    assert made.notes == from_config(tmp_path / "config.json").notes
    assert made.architecture.native_dtype == "bf16"


def test_parts_by_index_and_by_name(tmp_path: Path, described: dict[str, tuple[int, ...]]) -> None:
    names = list(described)
    halves = {"model-00001-of-00002.safetensors": names[:7], "model-00002-of-00002.safetensors": names[7:]}
    for file, part in halves.items():
        (tmp_path / file).write_bytes(safetensors({name: described[name] for name in part}))
    assert not any("weights" in note for note in from_config(folder(tmp_path)).notes)
    index = {"weight_map": {name: file for file, part in halves.items() for name in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert not any("weights" in note for note in from_config(tmp_path).notes)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert "1 of 2 weight files are not there" in from_config(tmp_path).notes[-1]


@pytest.mark.parametrize(
    ("more", "config"),
    [
        ({"model.layers.0.self_attn.rotary_emb.inv_freq": (32,)}, {}),
        ({"model.layers.2.mlp.up_proj.weight": (128, 64), "mtp.fc.weight": (64, 128)}, {}),
        ({}, {"tie_word_embeddings": True}),  # the head is stored all the same
        ({"model.layers.0.mlp.up_proj.weight_scale_inv": (1, 1)}, {}),
    ],
)
def test_what_is_stored_beside_parameters_does_not_count(
    tmp_path: Path, described: dict[str, tuple[int, ...]], more: dict[str, tuple[int, ...]], config: dict[str, Any]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(described | more))
    assert not any("weights" in note for note in from_config(folder(tmp_path, **config)).notes)


def test_a_padded_vocabulary_is_noted(tmp_path: Path, described: dict[str, tuple[int, ...]]) -> None:
    padded = described | {"model.embed_tokens.weight": (1024, 64), "lm_head.weight": (1024, 64)}
    (tmp_path / "model.safetensors").write_bytes(safetensors(padded))
    assert "embedding has 1024 rows, config.json says vocab_size 1000" in from_config(folder(tmp_path)).notes[-1]


def test_types_are_compared_and_fill_what_is_open(tmp_path: Path, described: dict[str, tuple[int, ...]]) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(described, "F32"))
    assert "stored in fp32, config.json says bf16" in from_config(folder(tmp_path)).notes[-1]
    assert from_config(folder(tmp_path, torch_dtype=None)).architecture.native_dtype == "fp32"


def test_weights_of_another_model_are_refused(tmp_path: Path, described: dict[str, tuple[int, ...]]) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(described))
    with pytest.raises(InputError, match=r"the weights have \d+ parameters, config\.json describes \d+"):
        from_config(folder(tmp_path, num_hidden_layers=4))


def test_weights_in_few_bits_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors({"model.layers.0.mlp.up_proj.qweight": (8, 128)}, "U8"))
    assert "stored in few bits" in from_config(folder(tmp_path)).notes[-1]


def entry(**changed: Any) -> bytes:
    return json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changed}).encode()


HOSTILE = {
    "nothing": b"",
    "seven bytes": b"\x01" * 7,
    "a length without end": b"\xff" * 8 + b"{}",
    "a header that is cut": struct.pack("<Q", 50) + b"{}",
    "no JSON": framed(b"{oh"),
    "no UTF-8": framed(b'{"\xff": 1}'),
    "a list": framed(b"[]"),
    "a deep list": framed(b"[" * 200_000),
    "a number of many digits": framed(b'{"w": ' + b"9" * 10_000 + b"}"),
    "an entry that is none": framed(b'{"w": 3}'),
    "a shape that is none": framed(entry(shape="2")) + bytes(8),
    "a negative size": framed(entry(shape=[-2])) + bytes(8),
    "a size beyond any": framed(entry(shape=[2**70])) + bytes(8),
    "a size that is a truth": framed(entry(shape=[True])) + bytes(8),
    "many dimensions": framed(entry(shape=[1] * 1000)) + bytes(8),
    "three offsets": framed(entry(data_offsets=[0, 4, 8])) + bytes(8),
    "data that is cut off": framed(entry()) + bytes(7),
    "bytes that are not the shape": framed(entry(shape=[3])) + bytes(8),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_with_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(HOSTILE[name])
    with pytest.raises(InputError) as caught:
        from_config(folder(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}/model.safetensors: not a safetensors file: ")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("target", ["../x.safetensors", "/etc/passwd", "a\n.safetensors", 3, "x.bin"])
def test_an_index_that_leaves_its_folder_is_refused(tmp_path: Path, target: Any) -> None:
    index = {"weight_map": {"w": target}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(InputError, match="weight_map does not name"):
        from_config(folder(tmp_path))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="not a file"):
        from_config(tmp_path)


@given(st.binary(max_size=200))
def test_any_bytes_give_tensors_or_a_problem(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "model.safetensors"
    for content in (raw, framed(raw)):
        path.write_bytes(content)
        with suppress(InputError):
            header_of(path)


def test_files_of_the_library_itself(tmp_path: Path) -> None:
    library, numpy = pytest.importorskip("safetensors.numpy"), pytest.importorskip("numpy")
    library.save_file({"w": numpy.zeros((2, 3), numpy.float16)}, tmp_path / "model.safetensors", {"format": "pt"})
    assert header_of(tmp_path / "model.safetensors")[0] == [Stored("w", "F16", (2, 3))]
