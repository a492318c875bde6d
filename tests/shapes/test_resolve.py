"""From the spec's model to shapes, and how long its sequences are."""

from pathlib import Path

import pytest

from dsgen.errors import InputError, Place, RefusedError
from dsgen.facts.models import models
from dsgen.shapes.from_row import architecture
from dsgen.shapes.resolve import sequence_length_of, shapes_of
from dsgen.spec.values import HardwareSpec, Method, ModelSizes, ModelSpec, Spec, Training


def spec(model: ModelSpec, training: Training | None = None) -> Spec:
    places = {
        ("model",): Place("spec.yaml", 1, 8),
        ("model", "parameters"): Place("spec.yaml", 1, 21),
        ("training", "method", "targets"): Place("spec.yaml", 7, 3),
    }
    return Spec(file="spec.yaml", model=model, hardware=HardwareSpec(), training=training or Training(), places=places)


def test_by_name() -> None:
    assert shapes_of(spec(ModelSpec(name="meta-llama/Llama-2-7b-hf"))).parameters == 6_738_415_616


def test_by_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    assert shapes_of(spec(ModelSpec(path=tmp_path))).parameters == 6_738_415_616


def test_by_sizes() -> None:
    assert shapes_of(spec(ModelSpec(sizes=ModelSizes(parameters=7 * 10**9)))).stated_parameters == 7 * 10**9


def test_with_its_method() -> None:
    method = Method(type="lora", rank=8, targets=("q_proj", "v_proj"))
    assert shapes_of(spec(ModelSpec(name="llama-2-7b"), Training(method=method))).trainable == 4_194_304


def test_lora_keeps_the_stated_parameters() -> None:
    method = Method(type="lora")
    shapes = shapes_of(spec(ModelSpec(sizes=ModelSizes(parameters=7 * 10**9)), Training(method=method)))
    assert shapes.stated_parameters == 7 * 10**9


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ModelSpec(name="lama-2-7b"), "spec.yaml:1:8: no model is called 'lama-2-7b'\n  help: did you mean llama-2-7b"),
        (ModelSpec(name="###"), "spec.yaml:1:8: no model is called '###'\n  help: dsgen show models lists all"),
        (ModelSpec(name="t5-small"), "spec.yaml:1:8: t5-small is an encoder-decoder: not supported yet"),
        (ModelSpec(sizes=ModelSizes(parameters=10)), "spec.yaml:1:21: 10 parameters are too few"),
    ],
)
def test_what_cannot_be_found_is_said_where_it_stands(model: ModelSpec, message: str) -> None:
    with pytest.raises(InputError) as caught:
        shapes_of(spec(model))
    assert str(caught.value).startswith(message)


def test_a_wrong_target_is_said_where_it_stands() -> None:
    method = Method(type="lora", targets=("query",))
    with pytest.raises(InputError, match=r"^spec\.yaml:7:3: "):
        shapes_of(spec(ModelSpec(name="llama-2-7b"), Training(method=method)))


@pytest.mark.parametrize(
    ("model", "written", "length", "note"),
    [
        ("llama-2-7b", None, 4096, "sequence_length not given: 4096 assumed"),
        ("llama-3.1-8b", None, 4096, "sequence_length not given: 4096 assumed"),
        ("gpt2", None, 1024, "sequence_length not given: 1024 assumed"),
        ("llama-2-7b", 4096, 4096, None),
        ("gpt2", 1024, 1024, None),
        (
            "llama-2-7b",
            8192,
            8192,
            "sequence_length 8192 is beyond the 4096 positions that the model was trained for",
        ),
    ],
)
def test_sequence_length(model: str, written: int | None, length: int, note: str | None) -> None:
    training = Training(sequence_length=written)
    assert sequence_length_of(training, architecture(models()[model])) == (length, note)


def test_learned_positions_end_where_their_table_ends() -> None:
    with pytest.raises(RefusedError, match="beyond the model's 1024 learned positions") as caught:
        sequence_length_of(Training(sequence_length=1025), architecture(models()["gpt2"]), Place("spec.yaml", 5, 20))
    assert str(caught.value).startswith("spec.yaml:5:20: ")
    assert caught.value.exit_code == 1
