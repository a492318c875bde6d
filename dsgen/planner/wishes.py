"""What the spec's ``want`` fixes, as a partial plan."""

from collections.abc import Callable
from dataclasses import fields
from typing import cast

from dsgen.errors import InputError, RefusedError
from dsgen.plan import BucketWishes, Checkpointing, CheckpointingKind, SwapWishes, Wishes, ZeroPP
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
        if (only := _ONLY.get(key)) is not None and spec.target.format != only:
            help = f"leave it out, or use target: {{format: {only}}}"
            raise RefusedError.at(f"{spec.target.format} has no {key} to set", spec.place("want", key), help)
        values[key] = _TYPES.get(key, _as_it_is)(value)
    if spec.training.precision != "auto":
        values.setdefault("precision", spec.training.precision)
    return Wishes(**values)  # type: ignore[arg-type]  # typed by the schema, key by key


# What one format alone has; in another it would be ignored.
_ONLY = {
    "buckets": "deepspeed",
    "swap": "deepspeed",
    "overlap_comm": "deepspeed",
    "reduce_each_micro_batch": "fsdp2",
}


def _as_it_is(value: object) -> object:
    return value


def _checkpointing(value: object) -> Checkpointing:
    if isinstance(value, dict):
        return Checkpointing("every", int(value["every"]))
    return Checkpointing(cast(CheckpointingKind, value))


def _buckets(value: object) -> BucketWishes:
    return BucketWishes(**cast(dict[str, int], value))


def _swap(value: object) -> SwapWishes:
    return SwapWishes(**cast(dict[str, int], value))  # type: ignore[arg-type]  # pin_memory; typed by the schema


def _zeropp(value: object) -> ZeroPP:
    return ZeroPP(**cast(dict[str, int], value))  # type: ignore[arg-type]  # two are boolean; typed by the schema


_TYPES: dict[str, Callable[[object], object]] = {
    "checkpointing": _checkpointing,
    "buckets": _buckets,
    "swap": _swap,
    "zeropp": _zeropp,
}
