"""What the spec's ``want`` fixes, as a partial plan."""

from dataclasses import fields
from math import isqrt
from typing import cast

from dsgen.errors import InputError
from dsgen.plan import Checkpointing, CheckpointingKind, Wishes
from dsgen.spec.values import Spec

_NAMES = frozenset(field.name for field in fields(Wishes))


def wishes_of(spec: Spec, layers: int) -> Wishes:
    """The wishes in ``spec.want``; ``layers`` gives {every: sqrt} its number.

    A key that is no field of a plan is refused: the schema should have caught it already.
    """
    values: dict[str, object] = {}
    for key, value in spec.want.items():
        if key not in _NAMES:
            raise InputError.at(f"dsgen does not support the wish {key!r} yet", spec.place("want", key))
        values[key] = _checkpointing(value, layers) if key == "checkpointing" else value
    if spec.training.precision != "auto":
        values.setdefault("precision", spec.training.precision)
    return Wishes(**values)  # type: ignore[arg-type]  # typed by the schema, key by key


def _checkpointing(value: object, layers: int) -> Checkpointing:
    if isinstance(value, dict):
        every = value["every"]
        # Checkpoints sqrt(layers) apart keep the fewest activations: Chen et al., arXiv 1604.06174.
        return Checkpointing("every", isqrt(layers) if every == "sqrt" else int(every))
    return Checkpointing(cast(CheckpointingKind, value))
