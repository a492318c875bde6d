"""bf16 where the GPU has it, else fp16, else fp32; and a warning for a bf16 model in fp16."""

import pytest
from planner_specs import spec

from dsgen.hardware import hardware_of
from dsgen.plan import Precision
from dsgen.planner.precision import precision_of
from dsgen.shapes.resolve import shapes_of


def decided(gpu: str, model: str, wished: Precision | None = None) -> tuple[Precision, str]:
    given = spec(model, gpu=gpu)
    precision, notes = precision_of(wished, hardware_of(given), shapes_of(given))
    return precision, " ".join(notes)


@pytest.mark.parametrize(
    ("gpu", "precision"),
    [("a100-80gb-sxm", "bf16"), ("rtx-4090", "bf16"), ("v100-16gb-sxm", "fp16"), ("t4", "fp16"), ("p100-16gb", "fp32")],
)
def test_auto(gpu: str, precision: Precision) -> None:
    assert decided(gpu, "gpt2")[0] == precision


def test_bf16_model_in_fp16_is_told_to_use_bf16_where_there_is_bf16() -> None:
    """Public report BR-017: no loss scale cures it."""
    precision, notes = decided("a100-80gb-sxm", "mistral-7b-v0.1", "fp16")
    assert precision == "fp16"
    assert "pre-trained in bf16" in notes
    assert "use precision: bf16, which this GPU has" in notes
    assert "neither a fixed loss_scale nor a higher min_loss_scale" in notes


def test_bf16_model_on_a_card_without_bf16_is_told_so() -> None:
    precision, notes = decided("v100-32gb-sxm", "mistral-7b-v0.1")
    assert precision == "fp16"
    assert "dynamic loss scaling" in notes
    assert "a GPU with bf16" in notes


def test_fp16_model_in_fp16_is_no_news() -> None:
    assert "overflow" not in decided("v100-16gb-sxm", "gpt2")[1]
