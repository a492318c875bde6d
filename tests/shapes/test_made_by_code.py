"""Models that only code knows: made on the meta device in a process of its own, counted to the last parameter."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from dsgen.errors import InputError, ProblemsError, RefusedError
from dsgen.shapes.resolve import shapes_of
from dsgen.spec.read import spec_from_text
from dsgen.spec.values import Spec

TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (extra: smoke)")
TRANSFORMERS = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed (extra: hf)")

OWN = """\
from pathlib import Path
import sys
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(512, 1536), nn.Linear(512, 512)
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)
        self.before, self.between = nn.LayerNorm(512), nn.LayerNorm(512)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(32000, 512), nn.Embedding(1024, 512)
        self.blocks = nn.ModuleList(Block() for _ in range(12))
        self.head = nn.Linear(512, 32000, bias=False)


def build():
    Path(__file__).with_name("called").touch()
    return Model()


def no_blocks():
    return nn.Linear(512, 512)


def fails():
    raise RuntimeError("no such day")


def leaves():
    sys.exit(0)


def number():
    return 7
"""


def spec(folder: Path, name: str) -> Spec:
    (folder / "own_model.py").write_text(OWN, encoding="utf-8")
    path = folder / "spec.yaml"
    return spec_from_text(f"model: {{factory: own_model:{name}}}\nhardware: {{gpu: h100}}\n", str(path))


def test_nothing_is_called_by_who_only_looks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is called here") as caught:
        shapes_of(spec(tmp_path, "build"))
    assert "spec.yaml:1:18" in str(caught.value)
    assert not (tmp_path / "called").exists()


@TORCH
def test_a_factory_is_counted_to_the_last_parameter(tmp_path: Path) -> None:
    made = shapes_of(spec(tmp_path, "build"), runs=True)
    assert (tmp_path / "called").exists()
    h, i, v = 512, 2048, 32000
    block = 3 * h * h + 3 * h + h * h + h + 2 * h * i + i + h + 4 * h
    assert [made_block.parameters for made_block in made.blocks] == [block] * 12
    assert made.parameters == made.trainable == 12 * block + 2 * v * h + 1024 * h
    arch = made.architecture
    assert (arch.layers, arch.hidden, arch.intermediate, arch.vocab, arch.mlp) == (12, h, i, v, "gelu")
    assert made.factory == "own_model:build"
    assert f"{made.parameters} parameters counted on the meta device" in made.notes[-1]


@TORCH
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_blocks", "has 262656 parameters, but no list of equal blocks"),
        ("fails", "call own_model:fails: RuntimeError: no such day"),
        ("leaves", "call own_model:leaves: SystemExit"),
        ("number", "TypeError: a int came back"),
        ("absent", "AttributeError"),
    ],
)
def test_what_is_no_decoder_is_refused_at_its_place(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ProblemsError, match=r"spec\.yaml:1:18: ") as caught:
        shapes_of(spec(tmp_path, name), runs=True)
    assert message in str(caught.value)


def unknown(folder: Path, **config: object) -> Spec:
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return spec_from_text("model: ./model\nhardware: {gpu: h100}\n", str(folder / "spec.yaml"), folder)


PERSIMMON = {
    "architectures": ["PersimmonForCausalLM"],
    "model_type": "persimmon",
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}


@TRANSFORMERS
def test_a_class_without_an_entry_is_counted_by_transformers(tmp_path: Path) -> None:
    asked = unknown(tmp_path, **PERSIMMON)
    with pytest.raises(InputError, match="PersimmonForCausalLM is not supported"):
        shapes_of(asked)
    made = shapes_of(asked, runs=True)
    h, i = 256, 688
    # Biases everywhere, norms of queries and keys for each head, an MLP of two matrices.
    block = 3 * h * h + 3 * h + h * h + h + 4 * (h // 4) + 2 * h * i + i + h + 4 * h
    assert made.parameters == 2 * 1000 * h + 3 * block + 2 * h
    assert [made_block.parameters for made_block in made.blocks] == [block] * 3
    assert (made.architecture.hf_architecture, made.architecture.family) == ("PersimmonForCausalLM", "persimmon")


@TRANSFORMERS
def test_code_beside_a_config_is_not_run(tmp_path: Path) -> None:
    asked = unknown(
        tmp_path,
        architectures=["Own"],
        model_type="own-model",
        auto_map={"AutoConfig": "own.Config", "AutoModel": "own.M"},
    )
    (tmp_path / "model" / "own.py").write_text("raise SystemExit(open('called', 'w'))\n", encoding="utf-8")
    with pytest.raises(RefusedError):
        shapes_of(asked, runs=True)
    assert not (tmp_path / "called").exists()
