"""A plan as FSDP2 code: the module that shards a model, or a folder that trains with it."""

from collections.abc import Mapping
from pathlib import Path

from dsgen.errors import RefusedError
from dsgen.formats.fsdp2.elsewhere import not_carried
from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.fsdp2.reasons import reasons
from dsgen.formats.fsdp2.sharding import sharding
from dsgen.formats.published import start
from dsgen.formats.values import Written
from dsgen.hardware import Hardware
from dsgen.legality.check import broken, explain
from dsgen.legality.values import Case
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target

NAME = "sharding.py"


def write(
    plan: Plan,
    shapes: Shapes,
    training: Training,
    target: Target,
    hardware: Hardware,
    sequence_length: int,
    *,
    bucket_reasons: Mapping[str, str] | None = None,
    templates: Path | None = None,
    folder: bool = False,
) -> Written:
    """sharding.py; with ``folder`` also train.py, what it needs, and a launcher beside it.

    Refuses a plan that breaks a row of the legality table. FSDP2 has no buckets to give reasons for.
    """
    del bucket_reasons
    case = Case(plan=plan, shapes=shapes, training=training, hardware=hardware, target=target)
    if rows := broken(case):
        raise RefusedError.at(explain(rows[0], plan))
    order = CodeOrder(case=case, sequence_length=sequence_length)
    files = {NAME: sharding(order, templates)}
    executable: frozenset[str] = frozenset()
    notes = list(not_carried(order))
    if folder:
        from dsgen.formats.fsdp2.folder import scripts

        beside, executable = scripts(order, templates)
        files |= beside
        if order.source != "factory":
            notes += start(shapes.architecture, by_transformers=order.source == "transformers")
    return Written(files, tuple(notes), tuple(reasons(order)), executable)
