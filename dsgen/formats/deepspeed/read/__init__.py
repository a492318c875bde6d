"""A DeepSpeed config as wishes: what it fixes, what it leaves open, what must survive, and what no plan can say.

The document is read already (dsgen.documents: strict JSON, or HJSON as DeepSpeed itself takes it). "auto" stays open
where whoever loads the file fills it in; elsewhere it is what DeepSpeed makes of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.documents.document import Document, Path
from dsgen.errors import InputError
from dsgen.formats.deepspeed.read.optimizer import open_parameters, read_optimizer
from dsgen.formats.deepspeed.read.precision import SWITCHES, read_precision
from dsgen.formats.deepspeed.read.scheduler import open_steps, read_scheduler
from dsgen.formats.deepspeed.read.table import CARRIED, NOT_CARRIED, OFF_BY_DEFAULT
from dsgen.formats.deepspeed.read.values import positive_size as to_size
from dsgen.formats.deepspeed.read.values import stage as to_stage
from dsgen.formats.deepspeed.read.walk import Entry, acting_stages, default, entries
from dsgen.reading import LeftOut, Reading, Said, wishes_of_said
from dsgen.target import Target

_STAGE = "zero_optimization.stage"
_PINNED = ("want", "swap", "pin_memory")
_GROUPS = ("optimizer.type", "optimizer.params", "scheduler.type", "scheduler.params", *SWITCHES, _STAGE)


def read(document: Document, target: Target) -> Reading:
    """What the config says to the DeepSpeed version and the loader of the target."""
    config = document.root.value if document.root is not None else None
    if not isinstance(config, Mapping):
        raise InputError.at("holds no DeepSpeed config", help='a config is an object: {"train_batch_size": ...}')
    version, loader = target.version("deepspeed"), target.loaded_by
    items = list(entries(config, version, loader))
    found = {item.key: item for item in items if isinstance(item, Entry)}
    left = [item for item in items if isinstance(item, LeftOut)]
    answers: list[Said | LeftOut | Entry] = [
        *_plan_keys(found, version),
        *read_precision(found, alone=loader == "deepspeed"),
    ]
    answers += [*read_optimizer(found), *read_scheduler(found)]
    said = _once([answer for answer in answers if isinstance(answer, Said)], left)
    left += [answer for answer in answers if isinstance(answer, LeftOut)]
    beyond = list(_beyond(found))
    return Reading(
        wishes=wishes_of_said(said),
        said=tuple(said),
        open=(*(item.key for item in found.values() if item.filled), *open_parameters(found), *open_steps(found)),
        passthrough=_nested([item for item in (*answers, *beyond) if isinstance(item, Entry)]),
        not_carried=(*left, *(item for item in beyond if isinstance(item, LeftOut))),
    )


def _plan_keys(found: Mapping[str, Entry], version: str) -> Iterator[Said | LeftOut]:
    stage = 0
    entry = found.get(_STAGE)
    switch = found.get("zero_optimization")
    if switch is not None and isinstance(switch.value, bool):
        # An old form (deepspeed/runtime/zero/config.py:read_zero_config_deprecated).
        stage = int(switch.value)
        yield Said(("want", "zero_stage"), stage, switch.at, "a bare switch: stage 1")
        yield from _old_allgather(found, stage)
    elif entry is None:
        yield Said(("want", "zero_stage"), 0, None, "no stage in the file: ZeRO is off")
    elif not entry.filled:
        try:
            stage = to_stage(entry.value)
            yield Said(("want", "zero_stage"), stage, entry.at)
        except ValueError as error:
            yield LeftOut(_STAGE, entry.value, str(error))
    yield from _carried(found, None if entry is not None and entry.filled else stage)
    for key, path in (("offload_optimizer", "offload_optimizer"), ("offload_param", "offload_parameters")):
        device = found.get(f"zero_optimization.{key}.device")
        if device is None:
            yield Said(("want", path), "none", None, f"no {key} in the file")
        elif device.value in ("cpu", "nvme") and f"zero_optimization.{key}.pin_memory" not in found:
            pinned = default(f"zero_optimization.{key}.pin_memory", version)
            yield Said(_PINNED, pinned, None, f"not in the file: the default of DeepSpeed {version}")
    if "gradient_clipping" not in found:
        clipping = default("gradient_clipping", version)
        yield Said(
            ("training", "gradient_clipping"), clipping, None, f"not in the file: the default of DeepSpeed {version}"
        )


def _old_allgather(found: Mapping[str, Entry], stage: int) -> Iterator[Said | LeftOut]:
    entry = found.get("allgather_size")
    if entry is None or not stage:
        return
    try:
        yield Said(("want", "buckets", "allgather"), to_size(entry.value), entry.at)
    except ValueError as error:
        yield LeftOut("allgather_size", entry.value, str(error))


def _carried(found: Mapping[str, Entry], stage: int | None) -> Iterator[Said | LeftOut]:
    for key, (path, reader) in CARRIED.items():
        entry = found.get(key)
        if entry is None or entry.filled:
            continue
        if (reason := _inert(entry, found, stage)) is not None:
            yield LeftOut(_dotted(entry.at), entry.value, reason)
            if path in (("want", "offload_parameters"), ("want", "offload_optimizer")):
                yield Said(path, "none", entry.at, reason)
            continue
        try:
            value = reader(entry.value)
        except ValueError as error:
            yield LeftOut(_dotted(entry.at), entry.value, str(error))
            continue
        if path[-1] == "tensor_parallel":
            value = max(value, 1)  # 0 is DeepSpeed's word for off
        yield Said(path, value, entry.at)


def _inert(entry: Entry, found: Mapping[str, Entry], stage: int | None) -> str | None:
    """Why a key that is read does nothing."""
    stages = _stages(entry)
    if stage is not None and stages is not None and stage not in stages:
        return f"acts at stage {', '.join(map(str, stages))}; the stage is {stage}"
    section, _, name = entry.key.rpartition(".")
    if section.rpartition(".")[2] not in ("offload_param", "offload_optimizer") or name == "device":
        return None
    device = found.get(f"{section}.device")
    if device is None or device.value == "none":
        return "nothing is offloaded"
    if name in ("buffer_count", "buffer_size", "max_in_cpu", "nvme_path") and device.value == "cpu":
        return "acts where the device is nvme"
    return None


def _stages(entry: Entry) -> tuple[int, ...] | None:
    for section, stages in (("zero_optimization.offload_param.", (3,)), ("zero_optimization.offload_", (1, 2, 3))):
        if entry.key.startswith(section):
            return stages
    return acting_stages(entry.schema)


def _once(said: list[Said], left: list[LeftOut]) -> list[Said]:
    """The first of those that fix the same thing; one that says otherwise is left out."""
    kept: dict[tuple[str, ...], Said] = {}
    for each in said:
        first = kept.setdefault(each.path, each)
        if first.value != each.value:
            where = _dotted(first.at) if first.at is not None else "the default"
            left.append(LeftOut(_dotted(each.at or each.path), each.value, f"{where} says {first.value!r}"))
    return list(kept.values())


def _beyond(found: Mapping[str, Entry]) -> Iterator[Entry | LeftOut]:
    """What no plan can say: left out where it changes bytes or the training, else to be kept."""
    left: dict[str, list[Entry]] = {}
    for key, entry in found.items():
        if key in CARRIED or key in _GROUPS or entry.filled or _is_old_form(key, found):
            continue
        start = next((start for start in NOT_CARRIED if key == start or key.startswith(f"{start}.")), None)
        if start is None or _says_nothing(entry, found):
            yield entry
        else:
            left.setdefault(start, []).append(entry)
    for start, within in left.items():
        # Of a section one line is enough.
        value = within[0].value if len(within) == 1 and within[0].key == start else _nested(within)
        yield LeftOut(_dotted(within[0].at[: start.count(".") + 1]), value, NOT_CARRIED[start])


def _is_old_form(key: str, found: Mapping[str, Entry]) -> bool:
    """Whether a key belongs to the bare switch that zero_optimization once was."""
    switch = found.get("zero_optimization")
    return switch is not None and isinstance(switch.value, bool) and key in ("zero_optimization", "allgather_size")


def _says_nothing(entry: Entry, found: Mapping[str, Entry]) -> bool:
    section = entry.key.partition(".")[0]
    if section in OFF_BY_DEFAULT:
        switch = found.get(f"{section}.deepcompile" if section == "compile" else f"{section}.enabled")
        inner = entry.value.get("enabled", False) if isinstance(entry.value, Mapping) else False
        return switch.value in (False, "false") if switch is not None else not inner
    return "default" in entry.schema and entry.value == entry.schema["default"]


def _nested(kept: list[Entry]) -> dict[str, Any]:
    """Kept values under the keys at which they stand."""
    result: dict[str, Any] = {}
    for entry in kept:
        node: Any = result
        for step in entry.at[:-1]:
            node = node.setdefault(step, {})
        node[entry.at[-1]] = entry.value
    return result


def _dotted(at: Path) -> str:
    return ".".join(map(str, at))
