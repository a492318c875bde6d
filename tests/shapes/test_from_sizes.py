"""A model by numbers: what is not given is inferred, close to what was asked, and said."""

import pytest

from dsgen.errors import InputError, Place
from dsgen.facts.models import models
from dsgen.shapes.from_sizes import LADDER, from_sizes
from dsgen.spec.values import ModelSizes

LLAMA_2_7B = ModelSizes(
    layers=32, hidden=4096, heads=32, kv_heads=32, head_dim=128, intermediate=11008, vocab=32000, tied=False
)


def place(key: str) -> Place:
    return Place("spec.yaml", {"parameters": 2, "layers": 3, "hidden": 4, "heads": 5, "kv_heads": 6}[key], 1)


@pytest.mark.parametrize(
    "billions",
    [0.05, 0.125, 0.35, 0.5, 1, 1.3, 1.5, 2.7, 3, 6, 6.7, 7, 8, 13, 20, 30, 34, 65, 70, 175, 405, 1000, 2000],
)
def test_parameters_alone_give_a_model_of_that_size(billions: float) -> None:
    stated = round(billions * 1e9)
    shapes = from_sizes(ModelSizes(parameters=stated))
    assert shapes.parameters == pytest.approx(stated, rel=0.01)
    assert shapes.stated_parameters == stated
    arch = shapes.architecture
    assert arch.heads * arch.head_dim == arch.hidden
    assert arch.heads % arch.kv_heads == 0
    # Every decoder in the table that has a gate lies between these.
    assert 1.5 < arch.intermediate / arch.hidden < 5.5


def test_seven_billion_looks_like_llama_2_7b_and_says_so() -> None:
    shapes = from_sizes(ModelSizes(parameters=7 * 10**9))
    arch = shapes.architecture
    assert (arch.layers, arch.hidden, arch.heads, arch.kv_heads, arch.vocab) == (32, 4096, 32, 32, 32000)
    inferred, actual = shapes.notes
    assert "inferred after llama-2-7b: layers 32, hidden 4096" in inferred
    assert f"{shapes.parameters:,} parameters, 0.1% fewer than the 7,000,000,000 stated" in actual
    assert shapes.name == "decoder-7b"


@pytest.mark.parametrize("name", LADDER)
def test_the_count_of_a_rung_gives_that_rung(name: str) -> None:
    model = models()[name]
    arch = from_sizes(ModelSizes(parameters=model.parameters)).architecture
    assert (arch.layers, arch.hidden, arch.heads, arch.kv_heads) == (
        model.layers,
        model.hidden,
        model.heads,
        model.kv_heads,
    )
    assert arch.intermediate == pytest.approx(model.intermediate, abs=64)


def test_full_sizes_are_taken_as_they_are() -> None:
    shapes = from_sizes(LLAMA_2_7B)
    assert shapes.parameters == 6_738_415_616
    assert shapes.notes == ()
    assert shapes.stated_parameters is None


def test_sizes_win_over_stated_parameters_within_a_tenth() -> None:
    from dataclasses import replace

    shapes = from_sizes(replace(LLAMA_2_7B, parameters=7 * 10**9))
    assert shapes.parameters == 6_738_415_616
    assert shapes.stated_parameters == 7 * 10**9
    assert shapes.notes == (
        "the model has 6,738,415,616 parameters, 3.7% fewer than the 7,000,000,000 stated; the sizes count",
    )


@pytest.mark.parametrize(
    ("stated", "accepted"),
    [(7_487_000_000, True), (7_488_000_000, False), (6_126_000_000, True), (6_125_000_000, False)],
)
def test_a_tenth_is_the_limit(stated: int, accepted: bool) -> None:
    # 6,738,415,616 / 0.9 = 7,487,128,462 and / 1.1 = 6,125,832,378.
    from dataclasses import replace

    sizes = replace(LLAMA_2_7B, parameters=stated)
    if accepted:
        from_sizes(sizes, place)
        return
    with pytest.raises(InputError, match="the sizes give 6,738,415,616 parameters") as caught:
        from_sizes(sizes, place)
    assert str(caught.value).startswith("spec.yaml:2:1: ")
    assert caught.value.exit_code == 2


def test_partial_sizes_are_kept_and_the_rest_solved() -> None:
    shapes = from_sizes(ModelSizes(parameters=8 * 10**9, layers=32, hidden=4096, vocab=128256, kv_heads=8))
    arch = shapes.architecture
    assert (arch.layers, arch.hidden, arch.vocab, arch.kv_heads, arch.heads) == (32, 4096, 128256, 8, 32)
    # Llama-3-8B has 14336 and 8.03e9.
    assert arch.intermediate == pytest.approx(14336, abs=128)
    assert shapes.parameters == pytest.approx(8e9, rel=0.005)
    assert "layers" not in shapes.notes[0].split(":")[1]


def test_depth_is_solved_where_width_is_given() -> None:
    arch = from_sizes(ModelSizes(parameters=13 * 10**9, hidden=5120, intermediate=13824)).architecture
    assert arch.layers == 40


def test_heads_alone_split_the_inferred_width() -> None:
    arch = from_sizes(ModelSizes(parameters=7 * 10**9, heads=16)).architecture
    assert (arch.hidden, arch.heads, arch.head_dim) == (4096, 16, 256)
    arch = from_sizes(ModelSizes(parameters=7 * 10**9, heads=30)).architecture
    assert (arch.hidden, arch.heads, arch.head_dim) == (3840, 30, 128)


def test_the_mlp_stays_in_proportion() -> None:
    for model in models().values():
        if model.kind == "decoder" and not model.moe_experts:
            assert 1 <= model.intermediate / model.hidden <= 8, model.name


def test_layers_and_hidden_are_enough_without_parameters() -> None:
    shapes = from_sizes(ModelSizes(layers=2, hidden=64, vocab=256))
    assert (shapes.architecture.heads, shapes.architecture.head_dim) == (1, 64)
    assert shapes.name == "decoder-2x64"


def test_two_matrices_without_a_gate() -> None:
    shapes = from_sizes(ModelSizes(layers=2, hidden=512, vocab=1000, tied=True, mlp="gelu"))
    assert shapes.architecture.intermediate == 2048
    assert shapes.parameters == 1000 * 512 + 512 + 2 * (4 * 512**2 + 2 * 512 * 2048 + 2 * 512)


@pytest.mark.parametrize(
    ("sizes", "message", "line"),
    [
        (ModelSizes(), "needs layers", 3),
        (ModelSizes(layers=4), "needs hidden", 4),
        (ModelSizes(layers=4, hidden=100, heads=3), "hidden 100 is no multiple of heads 3", 5),
        (ModelSizes(layers=4, hidden=128, heads=8, kv_heads=3), "heads 8 is no multiple of kv_heads 3", 6),
        (ModelSizes(layers=4, hidden=128, heads=2, kv_heads=8), "heads 2 is no multiple of kv_heads 8", 6),
        (ModelSizes(parameters=1000), "too few for a vocabulary", 2),
        (ModelSizes(parameters=2**63 - 1), "layers are more than", 2),
        (ModelSizes(layers=2**62, hidden=64), "layers are more than", 3),
        (ModelSizes(parameters=10**9, heads=2**61, kv_heads=2**61 - 1), "no multiple of kv_heads", 6),
        (ModelSizes(parameters=7 * 10**9, layers=12, hidden=1024), "fewer than the 7,000,000,000 stated", 2),
        (ModelSizes(parameters=10**9, hidden=2**40), "more than the 1,000,000,000 stated", 2),
    ],
)
def test_impossible_sizes_are_refused_where_they_stand(sizes: ModelSizes, message: str, line: int) -> None:
    with pytest.raises(InputError, match=message) as caught:
        from_sizes(sizes, place)
    assert str(caught.value).startswith(f"spec.yaml:{line}:1: ")


@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        (ModelSizes(layers=2, hidden=63, heads=9), "heads"),
        (ModelSizes(layers=2, hidden=64, heads=4, head_dim=7), "head_dim"),
        (ModelSizes(layers=2, hidden=63), "hidden"),
        (ModelSizes(parameters=7 * 10**9, head_dim=127), "head_dim"),
    ],
)
def test_an_odd_head_cannot_be_rotated(sizes: ModelSizes, key: str) -> None:
    # transformers 5.24, modeling_rope_utils: "RoPE requires an even rotary dimension".
    with pytest.raises(InputError, match="cannot be rotated") as raised:
        from_sizes(sizes, lambda key: Place(f"model.{key}"))
    assert raised.value.problems[0].place == Place(f"model.{key}")
