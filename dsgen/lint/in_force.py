"""The config as one DeepSpeed version acts on it: each value, given or default, and what becomes of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dsgen.lint import effective, versions
from dsgen.lint import schema as sch
from dsgen.lint.coerce import REFUSED, by_pydantic, is_of
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.idle import idle_beside
from dsgen.lint.names import is_comment
from dsgen.lint.schema_values import check_value, goes_by_truth
from dsgen.lint.target import LintTarget

Keys = tuple[str, ...]
Origin = Literal["given", "default", "loader", "derived"]
Fate = Literal["acts", "ignored", "refused"]

# Neither read nor built from defaults where they are not given.
_ONLY_IF_GIVEN = ("optimizer", "scheduler", "weight_quantization", "datastates_ckpt", "msamp", "inference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One key as DeepSpeed sees it."""

    path: Keys
    """As it is written."""
    means: Keys
    """Under its present name, where ``path`` is another spelling."""
    value: Any
    """What is in force; of an ignored or refused key what stands in the file."""
    origin: Origin = "given"
    """loader: whoever loads the file writes a value over "auto"; derived: it follows from other keys."""
    fate: Fate = "acts"
    why: str | None = None
    """Why it does not act, or how another value came to be in force than the one written."""


@dataclass(frozen=True, slots=True)
class _Section:
    """Where the walk is."""

    given: Mapping[str, Any]
    schema: sch.Schema
    file: ConfigFile
    target: LintTarget
    path: Keys = ()
    means: Keys = ()
    inert: str | None = None
    """Why nothing in it acts."""

    def inner(self, key: str, given: Mapping[str, Any], schema: sch.Schema) -> "_Section":
        means = (*self.means, _present_name(key, schema))
        return replace(
            self, given=given, schema=schema, path=(*self.path, key), means=means, inert=_inert(key, schema, self)
        )


def in_force(file: ConfigFile, target: LintTarget) -> tuple[Value, ...]:
    """Every key of the file and every default beside it, in the schema's order; unknown keys after their neighbours."""
    return tuple(_section(_Section(file.section(), sch.deepspeed_schema(), file, target)))


def _section(section: _Section) -> Iterator[Value]:
    known = sch.properties(section.schema, section.given)
    version = section.target.deepspeed
    named = {
        _present_name(key, known[key]) for key in section.given if key in known and sch.exists(known[key], version)
    }
    for key, schema in known.items():
        if key in section.given:
            yield from _given(key, schema, section)
        elif key not in named and _present_name(key, schema) == key and sch.exists(schema, version):
            yield from _default(key, schema, section)
    for key, value in section.given.items():
        if key not in known:
            yield _unknown(key, value, section)


def _present_name(key: str, schema: sch.Schema) -> str:
    facts = sch.facts(schema)
    return str(facts.get("alias_of") or facts.get("renamed_to") or key)


def _default(key: str, schema: sch.Schema, section: _Section) -> Iterator[Value]:
    words = sch.keywords(schema, section.target.deepspeed)
    if words.get("properties") and "object" in sch.types(words):
        is_built = "null" not in sch.types(words) and key not in _ONLY_IF_GIVEN and "until" not in sch.facts(schema)
        if is_built:
            yield from _section(section.inner(key, {}, words))
    elif "default" in words and not words.get("deprecated"):
        inert = _inert(key, schema, section)
        where = (*section.means, key)
        default = Value(path=where, means=where, value=_by_default(words, section), origin="default")
        yield replace(default, fate="ignored", why=inert) if inert else default


def _by_default(words: Mapping[str, Any], section: _Section) -> Any:
    by_stage = sch.facts(words).get("by_stage", {})
    return by_stage.get(str(effective.stage(section.file, section.target)), words["default"])


def _given(key: str, schema: sch.Schema, section: _Section) -> Iterator[Value]:
    written = Value(
        path=(*section.path, key), means=(*section.means, _present_name(key, schema)), value=section.given[key]
    )
    if not sch.exists(schema, section.target.deepspeed):
        yield _out_of_its_versions(written, schema, section)
        return
    words = sch.keywords(schema, section.target.deepspeed)
    if isinstance(written.value, dict) and words.get("properties"):
        yield from _section(section.inner(key, written.value, words))
        return
    read = _read(written, words, section)
    inert = _inert(key, schema, section)
    # What is refused is refused whether or not it would act.
    yield replace(read, fate="ignored", why=inert) if inert and read.fate == "acts" else read
    if read.fate == "acts" and read.value is True and not inert:
        yield from _stood_for(key, schema, section)


def _stood_for(key: str, schema: sch.Schema, section: _Section) -> Iterator[Value]:
    """The values of the section that an old switch stands for: those that it says, and the defaults beside them."""
    name = _present_name(key, schema)
    whole = sch.keywords(section.schema.get("properties", {}).get(name, {}), section.target.deepspeed)
    if name == key or name in section.given or not whole.get("properties"):
        return
    said = json.loads(f"{{{sch.facts(schema)['instead']}}}")[name]
    for value in _section(section.inner(name, said, whole)):
        yield replace(value, origin="derived", why=f"{key} says so") if value.origin == "given" else value


def _read(written: Value, words: Mapping[str, Any], section: _Section) -> Value:
    """What DeepSpeed makes of a value that it looks at."""
    value, target = written.value, section.target
    if value is None and "by_stage" in sch.facts(words):
        return replace(written, value=_by_default(words, section), why="null leaves it to the stage")
    removed = _removed_choice(written, section)
    if removed:
        return replace(written, fate="refused", why=removed)
    if value == "auto" and not sch.takes_any_text(words) and "auto" not in words.get("enum", ()):
        return _auto(written, words, section)
    pydantic = sch.is_pydantic(section.schema, target.deepspeed)
    if not is_of(value, sch.types(words)) and goes_by_truth(words, pydantic, target):
        return replace(written, value=bool(value), why=f"any text and number but 0 is true: {value!r}")
    _, mark = check_value(value, words, section.schema, written.path, target)
    if mark and mark.severity == "error":
        return replace(written, fate="refused", why=mark.message)
    if is_of(value, sch.types(words)):
        return replace(written, why=mark.message) if mark else _clamped(written, sch.facts(words))
    made = by_pydantic(value, sch.types(words), target.since("0.15.0"))
    return written if made is REFUSED else replace(written, value=made, why=f"{value!r} is read so")


def _clamped(written: Value, facts: Mapping[str, Any]) -> Value:
    """A number as the code uses it: no less than the least that it takes."""
    least, value = facts.get("clamped"), written.value
    if least is None or isinstance(value, bool) or not isinstance(value, int | float):
        return written
    if value < least:
        return replace(written, value=least, why=f"{value} is read as {least}, the least")
    return replace(written, value=int(value)) if isinstance(value, float) and value.is_integer() else written


def _removed_choice(written: Value, section: _Section) -> str | None:
    """Why an optimizer or scheduler cannot be chosen in this version, by its name."""
    variants, name = sch.facts(section.schema).get("variants", {}), written.value
    if written.path[-1] != variants.get("by") or not isinstance(name, str):
        return None
    known = name.lower() if variants["ignore_case"] else name
    since, until = variants["since"].get(known), variants["until"].get(known)
    if not versions.at_least(section.target.deepspeed, since) and name not in variants["others"]["names"]:
        return f"comes with DeepSpeed {since}"
    return None if versions.before(section.target.deepspeed, until) else f"removed in DeepSpeed {until}"


def _auto(written: Value, words: Mapping[str, Any], section: _Section) -> Value:
    fillers, loader = sch.facts(words).get("auto", []), section.target.loaded_by
    if loader in fillers or loader == "lightning":
        return replace(written, origin="loader", why=f"{loader} fills it in")
    if not section.target.since(sch.facts(words).get("truthy", versions.ALWAYS)):
        return replace(written, value=True, why="any text is true")
    if loader is None and fillers:
        return replace(written, origin="loader", why=f"{' or '.join(fillers)} would fill it in")
    if loader != "accelerate" and sch.is_pydantic(section.schema, section.target.deepspeed):
        return replace(written, value=words.get("default"), origin="default", why='"auto" is dropped')
    return replace(written, fate="refused", why='nobody fills in this "auto"')


def _unknown(key: str, value: Any, section: _Section) -> Value:
    where = Value(path=(*section.path, key), means=(*section.means, key), value=value)
    if section.schema.get("additionalProperties"):
        return replace(where, fate="ignored", why=section.inert) if section.inert else where
    # pydantic sections drop every "auto" before they look at the keys.
    if sch.refuses_unknown(section.schema, section.target.deepspeed) and value != "auto":
        return replace(where, fate="refused", why="no key of this section")
    return replace(where, fate="ignored", why="a note" if is_comment(key) else "no key that is read here")


def _out_of_its_versions(written: Value, schema: sch.Schema, section: _Section) -> Value:
    facts, version = sch.facts(schema), section.target.deepspeed
    is_early = not versions.at_least(version, facts.get("since"))
    why = f"comes with DeepSpeed {facts['since']}" if is_early else f"removed in DeepSpeed {facts['until']}"
    if not is_early and "renamed_to" in facts:
        why = f"called {facts['renamed_to']} since DeepSpeed {facts['until']}"
    refused = sch.refuses_unknown(section.schema, version) or (not is_early and facts.get("then") == "refused")
    dropped = written.value == "auto" and sch.is_pydantic(section.schema, version)
    return replace(written, fate="refused" if refused and not dropped else "ignored", why=why)


def _inert(key: str, schema: sch.Schema, section: _Section) -> str | None:
    """Why a key that is read does nothing."""
    facts = sch.facts(schema)
    if section.inert:
        return section.inert
    if "dead" in facts:
        return str(facts["dead"])
    stage = effective.stage(section.file, section.target)
    if stage is not None and stage not in facts.get("stages", (stage,)):
        return f"acts at stage {', '.join(map(str, facts['stages']))}; the stage is {stage}"
    return _switched_off(key, facts, section) or idle_beside(section.means, key, section.given, stage)


def _switched_off(key: str, facts: Mapping[str, Any], section: _Section) -> str | None:
    neighbours = section.schema.get("properties", {})
    switch = sch.switch_of(section.schema)
    if switch is not None and key != "enabled" and len(section.means) == 1:
        default = sch.keywords(switch, section.target.deepspeed)["default"]
        is_on = (
            effective.is_on(section.file, section.path[0], section.target) if "enabled" in section.given else default
        )
        return f"{section.path[0]} is off" if is_on is False else None
    if "device" in neighbours and key != "device":
        device = section.given.get("device", "none")
        if device in ("none", "auto") and section.target.loaded_by != "accelerate":
            return "device is none: nothing is offloaded"
        if device in ("cpu", "nvme") and device not in facts.get("devices", (device,)):
            return f"acts with device {' or '.join(facts['devices'])}; it is {device}"
    return None
