"""On which keys of a config two DeepSpeed versions do not agree, and what edit keeps each as it was."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint.in_force import Keys, Value
from dsgen.lint.mark import Change, Step, insert, remove, rename
from dsgen.lint.mark import replace as replace_value
from dsgen.lint.target import LintTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key on which the two versions do not agree."""

    path: Keys
    """Where it stands, or would stand."""
    before: str
    after: str
    change: Change | None = None
    """What keeps it as it was, if anything does."""
    kept: bool = False
    """Whether it is gone after all edits."""


def differences_of(was: tuple[Value, ...], now: tuple[Value, ...], old: LintTarget) -> Iterator[Difference]:
    """Every key on which two versions do not agree, by what each acts on."""
    before, after = ({value.path: value for value in values} for values in (was, now))
    acted, acts = ({value.means: value for value in values if value.fate == "acts"} for values in (was, now))
    for path, value in after.items():
        if value.fate == "refused" and (path not in before or before[path].fate != "refused"):
            yield _refused(value, _as_one(value, before), acts)
    for path, value in before.items():
        if value.fate == "refused" and after.get(path, value).fate != "refused":
            yield Difference(path=path, before=_said(value), after=_said(after[path]) if path in after else "absent")
    # A switch that stands for a section is told by what it makes of the section's keys.
    sections = {means[:depth] for means in acted for depth in range(1, len(means))}
    for means in {**acted, **acts}:
        if means in sections:
            continue
        one, other = acted.get(means), acts.get(means)
        written = other and before.get(other.path)
        if (written and written.fate == "refused") or (one and after.get(one.path, one).fate == "refused"):
            continue
        if one is None and other is not None:
            one = _before_it_was_a_key(other, old)
        if one is not None and not _agree(one, other):
            yield _changed(one, other, after)
        elif one is None and other is not None and other.origin == "given":
            yield Difference(
                path=other.path,
                before=_said(before[other.path]) if other.path in before else "absent",
                after=_said(other),
                change=remove("remove it", other.path),
            )


def _as_one(value: Value, before: Mapping[Keys, Value]) -> Value | None:
    """What a key was that is refused now; of a section that was read key by key, the whole of it."""
    if value.path in before:
        return before[value.path]
    inside = [one for path, one in before.items() if path[: len(value.path)] == value.path and one.origin == "given"]
    return replace(value, fate="acts", why=None) if any(one.fate == "acts" for one in inside) else None


def _agree(one: Value, other: Value | None) -> bool:
    if other is None:
        # What went away with its key, or has nothing to act on any more, did nothing that could be missed.
        return one.origin == "default" or _is_off(one)
    is_switch = isinstance(one.value, bool), isinstance(other.value, bool)
    return one.origin == other.origin == "loader" or (one.value == other.value and is_switch[0] == is_switch[1])


def _before_it_was_a_key(value: Value, old: LintTarget) -> Value | None:
    """What held for a key before it could be set; None where the schema says nothing of it."""
    schema: sch.Schema = sch.deepspeed_schema()
    for key in value.means:
        schema = sch.resolve(schema.get("properties", {}).get(key, {}))
    defaults: Mapping[str, Any] = sch.facts(schema).get("defaults", {})
    if not defaults or sch.exists(schema, old.deepspeed):
        return None
    return replace(value, path=value.means, value=sch.by_version(defaults, old.deepspeed), origin="default", why=None)


def _refused(value: Value, before: Value | None, acts: Mapping[Keys, Value]) -> Difference:
    change = None
    if before is None or before.fate == "ignored" or _is_off(before):
        change = remove("remove it", value.path)
    elif json.dumps(before.value) != json.dumps(value.value):
        change = replace_value("write what it was read as", value.path, before.value)
    elif value.means != value.path and value.means not in acts:
        change = rename("use the present name", value.path, value.means[-1])
    return Difference(path=value.path, before=_said(before) if before else "absent", after=_said(value), change=change)


def _is_off(value: Value) -> bool:
    """Whether a key that worked did nothing: removing it changes no training."""
    if isinstance(value.value, dict):
        return _switched_off(value.value)
    schema: sch.Schema = sch.deepspeed_schema()
    for key in value.path:
        schema = sch.resolve(schema.get("properties", {}).get(key, {}))
    return "default" in schema and bool(value.value == schema["default"])


def _switched_off(section: Mapping[str, Any]) -> bool:
    if "enabled" in section:
        return not section["enabled"]
    inner = [value for value in section.values() if isinstance(value, dict)]
    return all(map(_switched_off, inner)) if inner else not section


def _changed(one: Value, other: Value | None, after: Mapping[Keys, Value]) -> Difference:
    there = after.get(one.path)
    if one.origin != "default" and there and there.fate == "ignored" and one.means != one.path:
        change = rename(f"use the present name {one.means[-1]!r}", one.path, one.means[-1])
        return Difference(path=one.path, before=_said(one), after=_said(there), change=change)
    if other is None:
        return Difference(path=one.path, before=_said(one), after=_said(there) if there else "absent")
    path = other.path
    switch = next((value for value in after.values() if value.means == path[:-1] and value.path != path[:-1]), None)
    if switch is not None:
        beside = {value.path[-1]: value.value for value in after.values() if _is_said_by(switch, value)}
        change = _spelt_out(switch, {**beside, path[-1]: one.value})
    elif other.origin != "default" or other.why:
        change = replace_value("write what it was read as", path, one.value)
    else:
        change = insert("write the former default", path, one.value)
    return Difference(path=path, before=_said(one), after=_said(other), change=change)


def _is_said_by(switch: Value, value: Value) -> bool:
    return value.path[:-1] == switch.means and value.origin == "derived"


def _spelt_out(switch: Value, section: Mapping[str, Any]) -> Change:
    """The section that an old switch stands for, in its place."""
    steps = (Step("rename", switch.path, switch.means[-1]), Step("replace", switch.path, dict(section)))
    return Change(f"write {switch.means[-1]!r} out", steps)


def _said(value: Value) -> str:
    text = json.dumps(value.value)
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    note = f" ({value.why})" if value.why else ""
    if value.fate != "acts":
        return f"{value.fate}{note}"
    return f"{shown} by default{note}" if value.origin == "default" else f"{shown}{note}"
