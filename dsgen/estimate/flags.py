"""Flags as a spec: what they say is read, typed and refused as if it stood in spec.yaml."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsgen.errors import InputError, Place, Problem
from dsgen.spec.read import spec_from_text
from dsgen.spec.source import working_folder
from dsgen.spec.values import KeyPath, Spec

_ASKED = {
    "model": "--model (a name, a folder with config.json, or a size such as 7B)",
    "gpu": "--gpu (dsgen show gpus lists them)",
    "world_size": "--world-size (processes in all)",
}
_NODE = 8
"""Most GPUs of a node where only the number of processes is known: machines that train have up to eight."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the spec that flags amount to."""

    text: str
    flag: str


def missing(flags: Mapping[str, Any], base: Spec | None) -> list[str]:
    """What has to be known of model and machines and is not, as flags."""
    if base is not None:
        return []
    given = {name for name in _ASKED if flags.get(name) is not None}
    if flags.get("gpus_per_node") is not None:
        given.add("world_size")
    return [asked for name, asked in _ASKED.items() if name not in given]


def spec_of(flags: Mapping[str, Any], base: Spec | None, file: str) -> tuple[Spec, list[str]]:
    """The spec that the flags make, over ``base`` where there is one; and what was assumed.

    Raises InputError, with the flag for a place.
    """
    gpus, nodes, notes = _machines(flags, base)
    lines = _lines(flags, gpus, nodes)
    text = "".join(f"{line.text}\n" for line in lines)
    try:
        made = spec_from_text(text, "flags", working_folder())
    except InputError as error:
        raise InputError(*(_placed(problem, lines) for problem in error.problems)) from None
    places = {path: _flag_place(place, lines) for path, place in made.places.items()}
    made = replace(made, file=file, places=places)
    return (made if base is None else _over(made, base, flags)), notes


def _machines(flags: Mapping[str, Any], base: Spec | None) -> tuple[int | None, int | None, list[str]]:
    """GPUs per node and nodes, from processes in all and per node."""
    world, per_node = flags.get("world_size"), flags.get("gpus_per_node")
    if per_node is None and base is not None:
        per_node = base.hardware.gpus_per_node
    if world is None:
        note = ["--world-size is not given: one node is assumed."] if base is None else []
        return flags.get("gpus_per_node"), None if base is not None else 1, note
    notes = []
    if per_node is None:
        per_node = max(size for size in range(1, _NODE + 1) if world % size == 0)
        if world > _NODE:
            notes.append(f"--gpus-per-node is not given: nodes of {per_node} GPUs are assumed.")
    if world % per_node and world > per_node:
        message = f"{world} processes are no whole number of nodes with {per_node} GPUs"
        raise InputError.at(message, Place("--world-size"), f"a multiple of {per_node}, or another --gpus-per-node")
    return min(per_node, world), max(1, world // per_node), notes


def _lines(flags: Mapping[str, Any], gpus: int | None, nodes: int | None) -> list[_Line]:
    """One line a flag, so that a problem's line says which flag it is about."""

    def line(depth: int, key: str, value: Any, flag: str) -> list[_Line]:
        return [] if value is None else [_Line(f"{'  ' * depth}{key}: {json.dumps(value)}", flag)]

    def section(name: str, inside: list[_Line]) -> list[_Line]:
        return [_Line(f"{name}:", ""), *inside] if inside else []

    model, gpu = flags.get("model"), flags.get("gpu")
    machine = line(1, "gpu", gpu or "placeholder", "--gpu")
    machine += line(
        1, "gpus_per_node", gpus, "--world-size" if flags.get("gpus_per_node") is None else "--gpus-per-node"
    )
    machine += line(1, "nodes", nodes, "--world-size")
    machine += line(1, "host_memory", flags.get("host_memory"), "--host-memory")
    training = line(1, "sequence_length", flags.get("sequence_length"), "--sequence-length")
    training += line(1, "attention", flags.get("attention"), "--attention")
    training += line(1, "method", _method(flags.get("method")), "--method")
    want = line(1, "micro_batch", flags.get("micro_batch"), "--micro-batch")
    want += line(1, "checkpointing", _checkpointing(flags.get("checkpointing")), "--checkpointing")
    return [
        *line(0, "model", _model(model) if model is not None else "placeholder", "--model"),
        *section("hardware", machine),
        *section("training", training),
        *section("want", want),
    ]


def _model(text: str) -> Any:
    """A size (7B) becomes sizes; the rest is a name or a path, as in a spec."""
    is_size = text[:1].isdigit() and text[-1:] in "KMBTkmbt" and not Path(text).exists()
    return {"parameters": text} if is_size else text


def _method(text: str | None) -> Any:
    return None if text is None else {"type": text}


def _checkpointing(text: str | None) -> Any:
    if text is None or not text.startswith("every"):
        return text
    return {"every": text.removeprefix("every").lstrip(":= ")}


def _placed(problem: Problem, lines: list[_Line]) -> Problem:
    return Problem(problem.message, _flag_place(problem.place, lines), problem.help)


def _flag_place(place: Place | None, lines: list[_Line]) -> Place:
    line = 0 if place is None or place.line is None else place.line
    flag = lines[line - 1].flag if 0 < line <= len(lines) else ""
    return Place(flag or "flags")


_OF_FLAG: Mapping[str, KeyPath] = {
    "sequence_length": ("training", "sequence_length"),
    "attention": ("training", "attention"),
    "method": ("training", "method"),
    "host_memory": ("hardware", "host_memory"),
}


def _over(made: Spec, base: Spec, flags: Mapping[str, Any]) -> Spec:
    """The base with what flags say instead."""
    given = {name for name, value in flags.items() if value is not None}
    hardware = base.hardware
    if "gpu" in given:
        hardware = replace(hardware, gpu=made.hardware.gpu, node=None)
    if given & {"world_size", "gpus_per_node"}:
        hardware = replace(
            hardware,
            gpus_per_node=made.hardware.gpus_per_node or hardware.gpus_per_node,
            nodes=made.hardware.nodes if "world_size" in given else hardware.nodes,
        )
    if "host_memory" in given:
        hardware = replace(hardware, host_memory=made.hardware.host_memory)
    said = {
        path[1]: getattr(made.training, str(path[1]))
        for name, path in _OF_FLAG.items()
        if name in given and path[0] == "training"
    }
    places = {path: place for path, place in made.places.items() if _is_given(path, given)}
    return replace(
        base,
        model=made.model if "model" in given else base.model,
        hardware=hardware,
        training=replace(base.training, **{str(name): value for name, value in said.items()}),
        want={**base.want, **made.want},
        places={**base.places, **places},
    )


def _is_given(path: KeyPath, given: set[str]) -> bool:
    return bool(path) and str(path[-1]) in given
