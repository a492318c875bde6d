"""Optimizer and schedule by the Trainer's names."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from dsgen.formats.hf.read import table
from dsgen.formats.hf.read.scalars import number
from dsgen.reading import LeftOut, Said
from dsgen.units import parse_integer


def optimizer(given: Mapping[str, Any]) -> Iterator[Said | LeftOut]:
    """The optimizer by the Trainer's name."""
    for key in table.OPTIMIZER:
        value = given.get(key)
        if isinstance(value, str) and value:
            name = value.lower().rpartition(".")[2]
            if name in table.OPTIMIZERS:
                yield Said(("training", "optimizer", "type"), table.OPTIMIZERS[name], (key,))
            else:
                yield LeftOut(key, value, "a spec has no such optimizer")
            return


def scheduler(given: Mapping[str, Any]) -> Iterator[Said | LeftOut]:
    """The schedule, with its length and warm-up where they are numbers."""
    total = given.get("max_steps")
    steps = _steps(total)
    for key in table.SCHEDULER:
        value = given.get(key)
        if not isinstance(value, str) or not value:
            continue
        name = value.lower().rpartition(".")[2]
        if name not in table.SCHEDULERS:
            yield LeftOut(key, value, "a spec has constant, linear and cosine schedules")
            return
        yield Said(("training", "scheduler", "type"), table.SCHEDULERS[name], (key,))
        break
    else:
        return
    if steps and table.SCHEDULERS[name] != "constant":
        yield Said(("training", "scheduler", "total_steps"), steps, ("max_steps",))
    yield from _warmup(given, steps)


def _warmup(given: Mapping[str, Any], steps: int | None) -> Iterator[Said | LeftOut]:
    path = ("training", "scheduler", "warmup_steps")
    warmup, ratio = given.get("warmup_steps"), given.get("warmup_ratio")
    try:
        stated = None if warmup is None else number(warmup)
        share = None if ratio is None else number(ratio)
    except ValueError as error:
        yield LeftOut("warmup_steps", warmup if ratio is None else ratio, str(error))
        return
    if stated and stated >= 1:
        yield Said(path, int(stated), ("warmup_steps",))
        return
    # transformers 5 takes a warmup_steps below 1 for a share, as warmup_ratio always was one.
    key, share = ("warmup_steps", stated) if stated else ("warmup_ratio", share)
    if not share:
        return
    if steps is None:
        yield LeftOut(key, share, "a share of steps whose number the data decides; a spec counts them")
    else:
        yield Said(path, ceil(steps * share), (key,), f"{share:g} of {steps} steps")


def _steps(value: Any) -> int | None:
    try:
        found = parse_integer(str(value))
    except ValueError:
        return None
    return found if found > 0 else None
