"""Walks a config along the schema: unknown, removed, renamed and dead keys, wrong types and values, for one version."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.auto import fate_of_auto
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, info, rename, warning
from dsgen.lint.names import closest, is_comment
from dsgen.lint.schema_values import check_value
from dsgen.lint.slip import Kind, Slip
from dsgen.lint.target import LintTarget

Keys = tuple[str, ...]
_MOST = 200
"""Slips of one file at most: nobody reads more, and looking for near names takes its time."""


def slips(file: ConfigFile, target: LintTarget, *kinds: Kind) -> Iterator[Mark]:
    """Marks of these kinds; the walk itself is done once per file."""
    yield from (slip.mark for slip in _walked(file, target) if slip.kind in kinds)


def kinds_of_slips(file: ConfigFile, target: LintTarget) -> set[Kind]:
    """Which kinds there are."""
    return {slip.kind for slip in _walked(file, target)}


def _walked(file: ConfigFile, target: LintTarget) -> tuple[Slip, ...]:
    key = ("slips", target)
    if key not in file.memo:
        file.memo[key] = tuple(islice(walk(file.section(), target), _MOST))
    found: tuple[Slip, ...] = file.memo[key]
    return found


def walk(config: Mapping[str, Any], target: LintTarget) -> Iterator[Slip]:
    """Every slip of a config, in the order of its keys."""
    yield from _object(config, sch.deepspeed_schema(), (), target, None)


def _object(
    value: Mapping[str, Any], schema: sch.Schema, path: Keys, target: LintTarget, asleep: str | None
) -> Iterator[Slip]:
    asleep = asleep or _asleep(value, schema, target)
    known = sch.properties(schema, value)
    others = schema.get("additionalProperties")
    named_freely: sch.Schema | None = others if isinstance(others, dict) else None
    for key, inner in value.items():
        here = (*path, key)
        key_schema = known.get(key, named_freely)
        if key_schema is None:
            if not others:
                yield from _unknown(key, value, schema, path, target)
            continue
        if not sch.exists(key_schema, target.deepspeed):
            yield from _out_of_its_versions(key_schema, schema, here, target)
            continue
        yield from _spelling(value, key, key_schema, here, target)
        yield from _value(inner, key_schema, schema, here, target, asleep)
    yield from _missing(value, schema, path, target, asleep)


def _missing(
    value: Mapping[str, Any], schema: sch.Schema, path: Keys, target: LintTarget, asleep: str | None
) -> Iterator[Slip]:
    facts = sch.facts(schema)
    needed = [*schema.get("required", ())]
    needed += [key for switch, keys in facts.get("needs", {}).items() if value.get(switch) for key in keys]
    absent = " and ".join(repr(key) for key in needed if key not in value)
    if not absent:
        return
    later = f", {asleep}" if asleep and "read_by" in facts else ""
    by_constructor = path[0] in ("optimizer", "scheduler") and path[1:] == ("params",)
    name, who = (path[0], "the constructor") if by_constructor else (".".join(path), target.library)
    message = f"{name} needs {absent}; without {'them' if ' and ' in absent else 'it'} {who} raises{later}"
    yield Slip("missing-parameter", (warning if later else error)(path, message, on="key"))


def _asleep(value: Mapping[str, Any], schema: sch.Schema, target: LintTarget) -> str | None:
    """Why nothing may come of a wrong value in this object; None where it acts in every training."""
    switch = schema.get("properties", {}).get("enabled")
    if switch and "default" in switch and not value.get("enabled", sch.keywords(switch, target.deepspeed)["default"]):
        return "only once it is switched on"
    only: str | None = sch.facts(schema).get("only")
    return only


def _value(
    value: Any, schema: sch.Schema, parent: sch.Schema, path: Keys, target: LintTarget, asleep: str | None
) -> Iterator[Slip]:
    words = sch.keywords(schema, target.deepspeed)
    if value == "auto" and not sch.takes_any_text(words) and "auto" not in words.get("enum", ()):
        mark = fate_of_auto(words, parent, path, target)
        if mark:
            yield Slip("auto-that-nobody-fills", mark)
        return
    kind, mark = check_value(value, words, parent, path, target, asleep)
    if kind and mark:
        yield Slip(kind, mark)
        return
    if isinstance(value, dict) and ("properties" in words or "additionalProperties" in words):
        yield from _object(value, words, path, target, asleep)
    if isinstance(value, list) and "items" in words:
        for index, item in enumerate(value):
            kind, mark = check_value(item, words["items"], parent, (*path, index), target, asleep)
            if kind and mark:
                yield Slip(kind, mark)


def _unknown(
    key: str, mapping: Mapping[str, Any], schema: sch.Schema, path: Keys, target: LintTarget
) -> Iterator[Slip]:
    # pydantic sections drop every "auto" before they look at the keys.
    refused = sch.refuses_unknown(schema, target.deepspeed) and mapping[key] != "auto"
    if not refused and is_comment(key):
        return
    known = sch.properties(schema, mapping)
    section = f"`{'.'.join(path)}`" if path else "the top level"
    lot = f"{target.library} refuses it" if refused else f"{target.library} ignores it without a word"
    message = f"{key!r} is no key of {section}: {lot}"
    here = (*path, key)
    near = closest(key, {name for name, inner in known.items() if sch.exists(inner, target.deepspeed)} - set(mapping))
    homes = [home for home in sch.places_of_keys().get(key, ()) if home != path]
    if near and near[1]:
        change = rename(f"rename it to {near[0]!r}", here, near[0], safe=False)
        if not refused:
            message += f": {_as_if_absent(near[0], sch.keywords(known[near[0]], target.deepspeed))}"
        yield Slip("unknown-key", error(here, message, help=f"did you mean {near[0]!r}?", on="key", fix=change))
    elif 1 <= len(homes) <= 2:
        # What a section of the file was meant to say is not said: the run is another one than was written down.
        make = error if refused or not path or () in homes else warning
        named = " or ".join(f"in `{'.'.join(home)}`" if home else "at the top level of the file" for home in homes)
        yield Slip("unknown-key", make(here, message, help=f"it belongs {named}", on="key"))
    else:
        help = f"did you mean {near[0]!r}?" if near else "remove it, or move it to the file that reads it"
        yield Slip("unknown-key", (error if refused else warning)(here, message, help=help, on="key"))


def _as_if_absent(key: str, words: Mapping[str, Any]) -> str:
    if key == "zero_optimization":
        return "ZeRO is off (stage 0)"
    default = words.get("default")
    return f"{key} stays {json.dumps(default)}" if default is not None else f"{key} is not set"


def _out_of_its_versions(schema: sch.Schema, parent: sch.Schema, path: Keys, target: LintTarget) -> Iterator[Slip]:
    facts = sch.facts(schema)
    refused = sch.refuses_unknown(parent, target.deepspeed)
    if not versions.at_least(target.deepspeed, facts.get("since")):
        lot = "refuses it" if refused else "ignores it"
        message = f"{path[-1]!r} came with DeepSpeed {facts['since']}; {target.library} {lot}"
        yield Slip("key-of-a-later-version", (error if refused else warning)(path, message, on="key"))
        return
    refused = refused or facts.get("then") == "refused"
    if "renamed_to" in facts:
        new = facts["renamed_to"]
        message = (
            f"{path[-1]!r} is called {new!r} since DeepSpeed {facts['until']}; {target.library} ignores the old name"
        )
        change = rename(f"rename it to {new!r}", path, new)
        yield Slip("renamed-key", warning(path, message, help=f"write {new!r}", on="key", fix=change))
        return
    lot = "refuses it, even where it is switched off" if refused else "ignores it"
    message = f"{path[-1]!r} was removed in DeepSpeed {facts['until']}; {target.library} {lot}"
    # With no version stated an older one may be in use, for which the key is right.
    make = error if refused and target.stated else warning
    yield Slip("removed-key", make(path, message, help=_instead(facts), on="key"))


def _instead(facts: Mapping[str, Any]) -> str:
    instead = str(facts.get("instead", "remove it"))
    return instead if instead.startswith("remove") else f"use {instead}"


def _spelling(value: Mapping[str, Any], key: str, schema: sch.Schema, path: Keys, target: LintTarget) -> Iterator[Slip]:
    facts = sch.facts(schema)
    other = facts.get("alias_of") or facts.get("renamed_to")
    if other in value:
        message = f"{key!r} and {other!r} are one and the same key: {target.library} refuses both at once"
        if key == "bfloat16":
            message = f"{target.library} reads 'bf16' and ignores 'bfloat16' beside it"
        make = warning if key == "bfloat16" else error
        related = ((((*path[:-1], other)), "the other one"),)
        yield Slip("key-given-twice", make(path, message, help=f"keep {other!r}", on="key", related=related))
        return
    if schema.get("deprecated"):
        message = f"{key!r} is an old name; {target.library} still reads it, with a warning"
        if "renamed_to" not in facts:
            message = f"{key!r} is an old key: {target.library} warns and drops its value"
        yield Slip("old-key", info(path, message, help=f"write {facts.get('instead', repr(other))}", on="key"))
    removed = facts.get("until")
    if removed and "renamed_to" not in facts:
        message = f"{key!r} works in {target.library} and was removed in {removed}"
        make = warning if facts.get("then") == "refused" else info
        yield Slip("key-removed-later", make(path, message, help=_instead(facts), on="key"))
    if "dead" in facts:
        yield Slip("dead-key", info(path, f"{key!r} does nothing: {facts['dead']}", help="remove it", on="key"))
