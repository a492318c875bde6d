"""From findings to the text of a spec: every line with its reason, what is unknown as comments, checked before it is
handed out."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsgen.errors import InputError, printable
from dsgen.init.values import Findings, Given, Unknown
from dsgen.reading import SpecPath
from dsgen.spec.read import spec_from_text
from dsgen.spec.schema import Schema, alternatives, flat, spec_schema
from dsgen.units import GIB

_ORDER = ("model", "hardware", "memory_budget", "training", "want", "target")
_INSIDE = {
    "hardware": ("node", "gpu", "gpus_per_node", "nodes", "interconnect", "host_memory", "nvme", "disk"),
    "training": (
        *("sequence_length", "global_batch", "global_tokens", "precision", "optimizer", "scheduler"),
        *("gradient_clipping", "method", "attention", "loss", "compile"),
    ),
    "optimizer": ("type", "lr"),
    "scheduler": ("type", "warmup_steps", "total_steps"),
    "method": ("type", "rank", "alpha", "dropout", "targets"),
    "want": ("zero_stage", "offload_optimizer", "offload_parameters", "micro_batch", "accumulation", "checkpointing"),
    "target": ("format", "loaded_by", "versions"),
}
_BYTES = frozenset(
    {("hardware", "host_memory"), ("hardware", "disk"), ("hardware", "nvme", "size"), ("memory_budget",)}
)
_PLAIN = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/.@+-]*", re.ASCII)
_NOT_PLAIN = frozenset({"null", "Null", "NULL", "~", ""})
_COLUMN = 44
_LONGEST = 160
_TRIES = 50


@dataclass(slots=True)
class _Branch:
    """A section while it is built."""

    lines: dict[str, Given | Unknown] = field(default_factory=dict)
    inner: "dict[str, _Branch]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Composed:
    """A spec's text."""

    text: str
    refused: tuple[str, ...]
    """What a spec can't say yet: such lines stand in the text as comments."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    path: SpecPath
    is_comment: bool = False


def compose(findings: Findings, header: Sequence[str]) -> Composed:
    """The text, with what the schema refuses made into comments."""
    refused: dict[SpecPath, str] = {}
    for _ in range(_TRIES):
        lines = _lines(findings, refused)
        problems = _problems(lines)
        if not problems:
            break
        refused |= problems
    head = [f"# {_clean(line)}".rstrip() for line in header]
    text = "\n".join([*head, *(line.text for line in lines)]) + "\n"
    said = tuple(f"{'.'.join(path)}: {why}" for path, why in refused.items())
    return Composed(text, said)


def _problems(lines: list[_Line]) -> dict[SpecPath, str]:
    """What a spec with these lines is refused for, by the path of the line."""
    known = {line.path for line in lines if not line.is_comment}
    checked = [line.text for line in lines]
    if ("model",) not in known:
        checked.append("model: placeholder")
    if not known & {("hardware", "gpu"), ("hardware", "node"), ("hardware", "gpu", "memory")}:
        open_ = (place for place, line in enumerate(lines) if line.path == ("hardware",) and not line.is_comment)
        at = next(open_, None)
        checked = checked if at is None else [*checked[: at + 1], "  gpu: placeholder", *checked[at + 1 :]]
        lines = lines if at is None else [*lines[: at + 1], _Line("", (), True), *lines[at + 1 :]]
        if at is None:
            checked.append("hardware: {gpu: placeholder}")
    try:
        spec_from_text("\n".join(checked) + "\n", "spec.yaml")
    except InputError as error:
        found: dict[SpecPath, str] = {}
        for problem in error.problems:
            line = problem.place.line if problem.place is not None else None
            if line is not None and line <= len(lines) and lines[line - 1].path:
                found.setdefault(lines[line - 1].path, problem.message)
        if not found:
            raise
        return found
    return {}


def _lines(findings: Findings, refused: Mapping[SpecPath, str]) -> list[_Line]:
    root = _Branch()
    entries: list[Given | Unknown] = [*findings.given, *findings.unknown]
    for each in entries:
        branch = root
        for step in each.path[:-1]:
            branch = branch.inner.setdefault(step, _Branch())
        branch.lines.setdefault(each.path[-1], each)
    return list(_section(root, (), _ORDER, refused, commented=False))


def _section(
    branch: _Branch, path: SpecPath, order: Sequence[str], refused: Mapping[SpecPath, str], *, commented: bool
) -> Iterator[_Line]:
    names = [*branch.lines, *branch.inner]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    for name in dict.fromkeys(names):
        here = (*path, name)
        is_refused = commented or here in refused
        if name in branch.inner:
            inner = branch.inner[name]
            empty = not _has_given(inner, here, refused)
            yield _line(here, f"{name}:", refused.get(here, ""), comment=is_refused or empty)
            yield from _section(inner, here, _INSIDE.get(name, ()), refused, commented=is_refused or empty)
        if name in branch.lines:
            yield _of(branch.lines[name], here, refused, commented=commented)


def _has_given(branch: _Branch, path: SpecPath, refused: Mapping[SpecPath, str]) -> bool:
    if path in refused:
        return False
    own = any(isinstance(each, Given) and (*path, name) not in refused for name, each in branch.lines.items())
    return own or any(_has_given(inner, (*path, name), refused) for name, inner in branch.inner.items())


def _of(each: Given | Unknown, path: SpecPath, refused: Mapping[SpecPath, str], *, commented: bool) -> _Line:
    if isinstance(each, Unknown):
        why = each.why if each.hint else f"unknown: {each.why}"
        return _line(path, f"{path[-1]}: {each.example}", why, comment=True)
    refusal = refused.get(path)
    note = (each.source or _described(path)) if refusal is None else ": ".join(filter(None, [each.source, refusal]))
    return _line(path, f"{path[-1]}: {_value(each.value, path)}", note, comment=commented or refusal is not None)


def _line(path: SpecPath, text: str, note: str, *, comment: bool) -> _Line:
    indent = "  " * (len(path) - 1)
    body = f"{indent}{'# ' if comment else ''}{text}"
    if note:
        body = f"{body:<{_COLUMN}}  # {_clean(note)}"
    return _Line(body, path, comment)


def _described(path: SpecPath) -> str:
    """What the schema says of a key, the first sentence."""
    schema: Schema = spec_schema()
    for step in path:
        forms = [flat(schema), *alternatives(flat(schema))]
        schema = next((form["properties"][step] for form in forms if step in form.get("properties", {})), {})
    text = str(flat(schema).get("description", ""))
    return re.split(r"(?<=[a-z)])[.:;]\s", text)[0].rstrip(".")


def _value(value: Any, path: SpecPath) -> str:
    if path in _BYTES and isinstance(value, int):
        return _bytes(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inner, ())}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(inner, ()) for inner in value) + "]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text not in _NOT_PLAIN else json.dumps(text)


def _bytes(size: int) -> str:
    """GiB with two decimals, whole ones from 100 on; rounded down, since what is there is never overstated."""
    if size >= 100 * GIB:
        return f"{size // GIB}GiB"
    return f"{size * 100 // GIB / 100:.2f}GiB" if size % GIB else f"{size // GIB}GiB"


def _clean(text: str) -> str:
    """One line that a comment can hold."""
    safe = printable(" ".join(text.split()))
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST - 3]}..."
