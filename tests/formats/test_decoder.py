"""The generated decoder: it has the tensors of Shapes, trains, and computes what transformers' class computes."""

import ast
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest
from decoder_jobs import FULL, LORA, equality_jobs, every_kind, run, shape_job
from hostile import HOSTILE

from dsgen.errors import RefusedError
from dsgen.facts.models import find_model
from dsgen.formats.decoder import decoder_source
from dsgen.shapes.from_row import from_row
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Attention, Method

VARIANTS: tuple[tuple[Method, Attention], ...] = ((FULL, "sdpa"), (LORA, "eager"), (FULL, "eager"), (LORA, "sdpa"))
WAYS = ("full", "selective", "every")


def architecture(name: str) -> Architecture:
    model = find_model(name)
    assert model is not None
    return from_row(model).architecture


def test_most_families_are_rendered() -> None:
    assert len({shapes.architecture.family for shapes in every_kind()}) >= 30


def test_tensors_and_training() -> None:
    """Method, attention and checkpointing rotate over the kinds; the full tier has every combination."""
    variants = zip(every_kind(), cycle(VARIANTS), cycle(WAYS), strict=False)
    jobs = [shape_job(shapes, *variant, way) for shapes, variant, way in variants]
    assert {name: found for name, found in run("check_decoders.py", jobs).items() if found} == {}


@pytest.mark.full
def test_tensors_and_training_in_every_variant() -> None:
    jobs = [shape_job(shapes, *variant, *WAYS) for shapes in every_kind() for variant in VARIANTS]
    assert {name: found for name, found in run("check_decoders.py", jobs).items() if found} == {}


def test_logits_are_those_of_transformers() -> None:
    """fp32, two layers: rounding alone is below 1e-6 of the largest logit; a wrong trait is above 1e-3."""
    jobs = list(equality_jobs(("sdpa",)))
    assert len(jobs) >= 30
    found = run("compare_decoders.py", jobs)
    assert {name: difference for name, difference in found.items() if difference > 1e-5} == {}


@pytest.mark.full
def test_logits_are_those_of_transformers_in_eager_too() -> None:
    found = run("compare_decoders.py", list(equality_jobs(("eager",))))
    assert {name: difference for name, difference in found.items() if difference > 1e-5} == {}


REFUSED = {
    "gemma-2-9b": "caps its attention scores",
    "deepseek-v3": "multi-head latent attention",
    "gpt-oss-20b": "sinks",
    "opt-350m": "embed_proj",
    "baichuan2-7b": "normalises its output head",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_rendered_faithfully_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(RefusedError, match=REFUSED[name]):
        decoder_source(architecture(name), FULL)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_model_name_stays_in_the_docstring(text: str) -> None:
    plain = ast.parse(decoder_source(architecture("llama-2-7b"), FULL, model="x"))
    hostile = ast.parse(decoder_source(architecture("llama-2-7b"), FULL, model=text))
    assert ast.dump(ast.Module(plain.body[1:], [])) == ast.dump(ast.Module(hostile.body[1:], []))


@pytest.mark.parametrize("kind", range(len(VARIANTS)))
def test_ruff_finds_nothing_to_change(kind: int, tmp_path: Path) -> None:
    method, attention = VARIANTS[kind]
    for number, shapes in enumerate(every_kind()):
        for bare in (False, True):
            text = decoder_source(shapes.architecture, method, model=shapes.name, attention=attention, bare=bare)
            (tmp_path / f"m{number}{bare}.py").write_text(text, encoding="utf-8")
    for command in (("format", "--check"), ("check",)):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
