"""Frozen parameters by the patterns of their names."""

import pytest

from dsgen.errors import InputError, Place
from dsgen.facts.models import models
from dsgen.shapes.freeze import leading_frozen, with_freeze
from dsgen.shapes.from_row import from_row
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Method

LLAMA = from_row(models()["llama-2-7b"])
BLOCK, EMBEDDING = 202_383_360, 32_000 * 4096


def frozen(*patterns: str, shapes: Shapes = LLAMA) -> Shapes:
    return with_freeze(shapes, patterns, lambda at: Place("spec.yaml", at + 1, 1))


@pytest.mark.parametrize(
    ("patterns", "elements"),
    [
        (["embed_tokens.weight"], EMBEDDING),
        (["model.embed_tokens.*"], EMBEDDING),
        (["embed_tokens"], EMBEDDING),
        (["lm_head", "embed_tokens"], 2 * EMBEDDING),
        (["layers.0"], BLOCK),
        (["layers.1?"], 10 * BLOCK),
        (["model.layers.[0-7].*"], 8 * BLOCK),
        (["*.mlp"], 32 * 3 * 4096 * 11008),
        (["*norm*"], 65 * 4096),
        (["layers.3.self_attn.q_proj", "layers.3.*"], BLOCK),
    ],
)
def test_patterns_freeze_what_they_name(patterns: list[str], elements: int) -> None:
    made = frozen(*patterns)
    assert made.parameters == LLAMA.parameters
    assert made.parameters - made.trainable == elements


def test_equal_layers_stay_one_object() -> None:
    made = frozen("layers.[0-9].*")
    assert len(made.kinds) == 2
    assert made.order == (0,) * 10 + (1,) * 22


@pytest.mark.parametrize(
    ("patterns", "blocks"),
    [
        ([], 0),
        (["layers.[0-4]"], 0),  # the embedding before them is trained
        (["embed_tokens", "layers.[0-4]"], 5),
        (["embed_tokens", "layers.[1-4]"], 0),
        (["embed_tokens", "layers"], 32),
    ],
)
def test_blocks_that_no_gradient_reaches(patterns: list[str], blocks: int) -> None:
    assert leading_frozen(frozen(*patterns)) == blocks


def test_adapters_are_reached() -> None:
    assert leading_frozen(with_method(LLAMA, Method(type="lora"))) == 0


def test_a_pattern_that_names_nothing_is_refused_where_it_stands() -> None:
    with pytest.raises(InputError, match=r"spec.yaml:2:1: freeze: 'embed_token' names no parameter") as caught:
        frozen("lm_head", "embed_token")
    assert "embed_tokens.weight" in str(caught.value)


def test_something_has_to_be_trained() -> None:
    with pytest.raises(InputError, match="nothing is left to train"):
        frozen("*")
