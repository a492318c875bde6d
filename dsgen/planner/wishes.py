"""What the spec's ``want`` fixes, as a partial plan."""

from dataclasses import fields
from typing import cast

from dsgen.errors import InputError
from dsgen.plan import Checkpointing, CheckpointingKind, Wishes
from dsgen.spec.values import Spec

_NAMES = frozenset(field.name for field in fields(Wishes))


def wishes_of(spec: Spec) -> Wishes:
    """The wishes in ``spec.want``, and the precision where training states one.

    A key that is no field of a plan is refused: the schema should have caught it already.
    """
    values: dict[str, object] = {}
    for key, value in spec.want.items():
        if key not in _NAMES:
            raise InputError.at(f"dsgen does not support the wish {key!r} yet", spec.place("want", key))
        values[key] = _checkpointing(value) if key == "checkpointing" else value
    if spec.training.precision != "auto":
        values.setdefault("precision", spec.training.precision)
    return Wishes(**values)  # type: ignore[arg-type]  # typed by the schema, key by key


def _checkpointing(value: object) -> Checkpointing:
    if isinstance(value, dict):
        return Checkpointing("every", int(value["every"]))
    return Checkpointing(cast(CheckpointingKind, value))
