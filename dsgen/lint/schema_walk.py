"""Walks a config along the schema: unknown, removed, renamed and dead keys, wrong types and values, for one version."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.auto import fate_of_auto
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, info, rename, warning
from dsgen.lint.schema_values import check_value
from dsgen.lint.slip import Kind, Slip
from dsgen.lint.target import LintTarget
from dsgen.lint.unknown_keys import unknown_key

Keys = tuple[str, ...]
_MOST = 200
"""Slips of one file at most: nobody reads more, and looking for near names takes its time."""


def slips(file: ConfigFile, target: LintTarget, *kinds: Kind) -> Iterator[Mark]:
    """Marks of these kinds; the walk itself is done once per file. What is misspelt is not missing as well."""
    found = _walked(file, target)
    meant = {slip.meant for slip in found}
    yield from (slip.mark for slip in found if slip.kind in kinds and not (slip.lacks and meant.issuperset(slip.lacks)))


def kinds_of_slips(file: ConfigFile, target: LintTarget) -> set[Kind]:
    """Which kinds there are."""
    return {slip.kind for slip in _walked(file, target)}


def is_misspelt(file: ConfigFile, target: LintTarget, *path: str) -> bool:
    """Whether a key that is not there stands there under a wrong name, which is told as that already."""
    return not file.has(*path) and any(slip.meant == path for slip in _walked(file, target))


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
                slip = unknown_key(key, value, schema, path, target)
                if slip:
                    yield slip
            continue
        if not sch.exists(key_schema, target.deepspeed):
            yield from _out_of_its_versions(key_schema, schema, here, target)
            continue
        yield from _spelling(value, key, key_schema, here, target)
        yield from _value(inner, key_schema, schema, here, target, asleep)
    absent = [key for key in _needed(value, schema) if key not in value]
    if absent:
        yield _missing(absent, schema, path, target, asleep)


def _needed(value: Mapping[str, Any], schema: sch.Schema) -> list[str]:
    needs = sch.facts(schema).get("needs", {})
    return [*schema.get("required", ()), *(key for switch, keys in needs.items() if value.get(switch) for key in keys)]


def _missing(keys: list[str], schema: sch.Schema, path: Keys, target: LintTarget, asleep: str | None) -> Slip:
    absent = " and ".join(map(repr, keys))
    later = f", {asleep}" if asleep and "read_by" in sch.facts(schema) else ""
    by_constructor = path[0] in ("optimizer", "scheduler") and path[1:] == ("params",)
    name, who = (path[0], "the constructor") if by_constructor else (".".join(path), target.library)
    message = f"{name} needs {absent}; without {'them' if ' and ' in absent else 'it'} {who} raises{later}"
    described = schema.get("properties", {}).get(keys[0], {}).get("description", "")
    help = f'write "{keys[0]}": {described.rstrip(".").lower()}' if len(keys) == 1 else f"write {absent}"
    mark = (warning if later else error)(path, message, help=help, on="key")
    return Slip("missing-parameter", mark, lacks=tuple((*path, key) for key in keys))


def _asleep(value: Mapping[str, Any], schema: sch.Schema, target: LintTarget) -> str | None:
    """Why nothing may come of a wrong value in this object; None where it acts in every training."""
    switch = sch.switch_of(schema)
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


def _out_of_its_versions(schema: sch.Schema, parent: sch.Schema, path: Keys, target: LintTarget) -> Iterator[Slip]:
    facts = sch.facts(schema)
    refused = sch.refuses_unknown(parent, target.deepspeed)
    if not versions.at_least(target.deepspeed, facts.get("since")):
        lot = "refuses it" if refused else "ignores it"
        message = f"{path[-1]!r} came with DeepSpeed {facts['since']}; {target.library} {lot}"
        help = f"remove it, or use DeepSpeed {facts['since']} or newer"
        yield Slip("key-of-a-later-version", (error if refused else warning)(path, message, help=help, on="key"))
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
