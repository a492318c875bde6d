"""One preset of every kind of decoder that is rendered, as work for check_decoders.py and compare_decoders.py."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from console import environment

from dsgen.errors import ProblemsError, RefusedError
from dsgen.facts.models import models
from dsgen.formats.decoder import decoder_source
from dsgen.formats.hf_config import NO_SPECIAL_TOKENS, hf_config, model_type
from dsgen.shapes.from_row import from_row
from dsgen.shapes.lora import with_method
from dsgen.shapes.tiny import tiny
from dsgen.shapes.tower import has_tower
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Attention, Method

Job = dict[str, Any]
FULL, LORA = Method(), Method(type="lora", dropout=0.1)


@cache
def every_kind() -> tuple[Shapes, ...]:
    """The first preset of each combination of traits; refused families apart, and towers: their folders are refused."""
    found: dict[object, Shapes] = {}
    for model in models().values():
        try:
            shapes = from_row(model)
            decoder_source(shapes.architecture, FULL)
        except ProblemsError:
            continue
        if has_tower(shapes):
            continue
        a = shapes.architecture
        window, moe = a.sliding_window is not None, a.moe is not None
        kind = (a.family, a.hf_architecture, a.tied, moe, window, a.norms_per_layer, a.attention_bias, a.qk_norm)
        found.setdefault(kind, shapes)
    return tuple(found.values())


def shape_job(shapes: Shapes, method: Method, attention: Attention, *ways: str) -> Job:
    trained = with_method(shapes, method)
    tensors = [
        *((f"layers.{n}.{t.name}", t) for n, block in enumerate(trained.blocks) for t in block.tensors),
        *((t.name, t) for t in trained.outside),
    ]
    return {
        "name": f"{shapes.name} {method.type} {attention}",
        "source": decoder_source(shapes.architecture, method, attention=attention),
        "tensors": {name: list(tensor.shape) for name, tensor in tensors},
        "ways": ["none", *ways],
        "trainable": [name for name, tensor in tensors if tensor.trainable],
    }


def equality_jobs(attentions: tuple[Attention, ...]) -> Iterator[Job]:
    """Only classes that transformers has: some families' code lives on the Hub alone."""
    for shapes in every_kind():
        a = shapes.architecture
        for attention in attentions:
            try:
                config = hf_config(tiny(a)) | NO_SPECIAL_TOKENS
            except RefusedError:
                continue
            yield {
                "name": f"{shapes.name} {attention}",
                "source": decoder_source(a, FULL, attention=attention),
                "model_type": model_type(a),
                "config": config,
            }


def run(script: str, jobs: list[Job]) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name(script)],
        input=json.dumps(jobs),
        env=environment(TRANSFORMERS_VERBOSITY="error"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    answers: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert len(answers) == len(jobs)
    return answers
