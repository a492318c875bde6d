"""A plan as a DeepSpeed config: one JSON file, or a folder that trains with it."""

import json
from collections.abc import Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path

from dsgen.errors import InputError, Place, RefusedError
from dsgen.formats.deepspeed.batch import batch
from dsgen.formats.deepspeed.case import Order, nested
from dsgen.formats.deepspeed.elsewhere import not_carried
from dsgen.formats.deepspeed.offload import aio, offload
from dsgen.formats.deepspeed.optimizer import optimizer
from dsgen.formats.deepspeed.parallel import tensor_parallel
from dsgen.formats.deepspeed.precision import precision
from dsgen.formats.deepspeed.scheduler import scheduler
from dsgen.formats.deepspeed.zero import zero
from dsgen.formats.published import start
from dsgen.formats.templating import render
from dsgen.formats.values import Reason, Written
from dsgen.hardware import Hardware
from dsgen.legality.check import broken, explain
from dsgen.legality.values import Case
from dsgen.plan import Buckets, Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target

NAME = "ds_config.json"
TEMPLATE = "deepspeed/ds_config.json.j2"
_SECTIONS = (batch, precision, optimizer, scheduler, zero, offload, aio, tensor_parallel)
_BUCKETS = [field.name for field in fields(Buckets)]
_NO_REASONS: Mapping[str, str] = dict.fromkeys(_BUCKETS, "decided by the plan")


def write(
    plan: Plan,
    shapes: Shapes,
    training: Training,
    target: Target,
    hardware: Hardware,
    sequence_length: int,
    *,
    bucket_reasons: Mapping[str, str] = _NO_REASONS,
    templates: Path | None = None,
    folder: bool = False,
) -> Written:
    """The config; with ``folder`` also train.py, model.py and launchers beside it.

    Refuses a plan that breaks a row of the legality table, so that no caller can write one.
    """
    case = Case(plan=plan, shapes=shapes, training=training, hardware=hardware, target=target)
    if rows := broken(case):
        raise RefusedError.at(explain(rows[0], plan))
    order = Order(case=case, sequence_length=sequence_length, bucket_reasons=bucket_reasons)
    reasons = list(chain.from_iterable(section(order) for section in _SECTIONS))
    files = {NAME: _config(reasons, templates)}
    executable: frozenset[str] = frozenset()
    notes = list(not_carried(order))
    if folder:
        from dsgen.formats.deepspeed.folder import scripts

        beside, executable = scripts(order, templates)
        files |= beside
        notes += start(shapes.architecture, by_transformers=order.by_trainer)
    return Written(files, tuple(notes), tuple(reasons), executable)


def _config(reasons: list[Reason], templates: Path | None) -> str:
    config = nested(reasons)
    text = render(TEMPLATE, {"config": config}, templates)
    problem = no_json(text)
    if problem is not None:
        raise InputError.at(f"the template yields no JSON: {problem}", Place(TEMPLATE))
    return text


def no_json(text: str) -> str | None:
    """Why the text is not strict JSON; None where it is."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return str(error)
    return None
