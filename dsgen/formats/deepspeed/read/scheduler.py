"""The scheduler section: DeepSpeed's classes in a spec's words."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.formats.deepspeed.read import values as to
from dsgen.formats.deepspeed.read.walk import Entry
from dsgen.reading import LeftOut, Said

_TYPES = {"WarmupLR": "constant", "WarmupDecayLR": "linear", "WarmupCosineLR": "cosine"}
_PARAMETERS: Mapping[str, tuple[str, to.Reader]] = {
    "warmup_num_steps": ("warmup_steps", to.size),
    "total_num_steps": ("total_steps", to.positive),
    "cos_min_ratio": ("min_lr_ratio", to.not_negative),
}
_LONG = 1000
"""deepspeed/runtime/lr_schedules.py: warmup_num_steps of all three classes, where it is not given."""


def read_scheduler(found: Mapping[str, Entry]) -> Iterator[Said | LeftOut | Entry]:
    """A warm-up from 0 along a line is a spec's; other starts and curves are left out by name."""
    entry = found.get("scheduler.type")
    params = found.get("scheduler.params")
    given = params.value if params is not None and isinstance(params.value, Mapping) else {}
    if entry is None or not isinstance(entry.value, str) or entry.value not in _TYPES:
        if entry is not None:
            yield LeftOut("scheduler", entry.value, "a spec has constant, linear and cosine schedules")
        return
    kind = _TYPES[entry.value]
    yield Said(("training", "scheduler", "type"), kind, entry.at)
    if "warmup_num_steps" not in given:
        why = "not in the file: the default of DeepSpeed's schedules"
        yield Said(("training", "scheduler", "warmup_steps"), _LONG, None, why)
    for key, value in given.items():
        at = (*(params.at if params is not None else ()), key)
        yield from _parameter(kind, key, value, at, _rate(found))
    if given.get("warmup_type", "log") != "linear":
        why = "DeepSpeed warms up along a logarithm unless it is told otherwise; a spec along a line"
        yield LeftOut("scheduler.params.warmup_type", given.get("warmup_type", "log"), why)


def open_steps(found: Mapping[str, Entry]) -> tuple[str, ...]:
    """Parameters that are "auto"."""
    params = found.get("scheduler.params")
    given = params.value if params is not None and isinstance(params.value, Mapping) else {}
    return tuple(f"scheduler.params.{key}" for key, value in given.items() if value == "auto")


def _rate(found: Mapping[str, Entry]) -> Any:
    params = found.get("optimizer.params")
    return params.value.get("lr") if params is not None and isinstance(params.value, Mapping) else None


def _parameter(
    kind: str, key: str, value: Any, at: tuple[str | int, ...], rate: Any
) -> Iterator[Said | LeftOut | Entry]:
    if value == "auto" or key == "warmup_type":
        return
    dotted = ".".join(map(str, at))
    if key in _PARAMETERS and not (kind == "constant" and key != "warmup_num_steps"):
        name, reader = _PARAMETERS[key]
        try:
            yield Said(("training", "scheduler", name), reader(value), at)
        except ValueError as error:
            yield LeftOut(dotted, value, str(error))
    elif key in ("warmup_min_lr", "warmup_min_ratio"):
        if value:
            yield LeftOut(dotted, value, "a spec's warm-up starts at 0")
    elif key == "warmup_max_lr":
        if rate is None or rate == "auto":
            yield from _peak(value, at, dotted)
        elif value != rate:
            yield LeftOut(dotted, value, "a spec's warm-up ends at the optimizer's learning rate")
    elif key == "last_batch_iteration":
        yield Entry(dotted, value, at, {})
    else:
        yield LeftOut(dotted, value, "a spec has no such parameter of a schedule")


def _peak(value: Any, at: tuple[str | int, ...], dotted: str) -> Iterator[Said | LeftOut]:
    try:
        yield Said(("training", "optimizer", "lr"), to.not_negative(value), at)
    except ValueError as error:
        yield LeftOut(dotted, value, str(error))
