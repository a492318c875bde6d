"""The plain JSON Schema (2020-12) of one DeepSpeed version, derived from the one that knows them all.

It says how a config is rightly written, so it is stricter than DeepSpeed where DeepSpeed is careless: an unknown key is
refused at the top level too, and "2" is no number even where pydantic would convert it. The walk over the schema
(schema_walk) finds the same places, and says what becomes of each.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint.names import COMMENT
from dsgen.lint.versions import Version, show

_KEPT = (
    *("title", "description", "type", "enum", "default", "deprecated", "required"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength"),
)

_FALSE: list[Any] = [False, None, 0, "", [], {}]
"""What counts for off where code asks ``if value:``."""


def plain_schema(version: Version) -> dict[str, Any]:
    """A schema without anything of dsgen's own, for one DeepSpeed version."""
    whole = sch.deepspeed_schema()
    plain = _plain(whole, version)
    return {
        "$schema": whole["$schema"],
        **plain,
        "title": f"DeepSpeed {show(version)} config",
        "description": f"The JSON file of deepspeed.initialize, as DeepSpeed {show(version)} reads it.",
    }


def _plain(schema: sch.Schema, version: Version) -> dict[str, Any]:
    words = sch.keywords(schema, version)
    plain = {name: words[name] for name in _KEPT if name in words}
    if "ignore_case" in sch.facts(words):
        plain = {"pattern": _any_case(plain.pop("enum")), **plain}
    if "items" in words:
        plain["items"] = _plain(words["items"], version)
    if "properties" in words:
        plain |= _members(words, version)
    return plain


def _members(words: Mapping[str, Any], version: Version) -> dict[str, Any]:
    known = {key: inner for key, inner in words["properties"].items() if sch.exists(inner, version)}
    members: dict[str, Any] = {
        "properties": {key: _or_auto(inner, version) for key, inner in known.items()},
        "additionalProperties": _others(words.get("additionalProperties", False), version),
    }
    if not sch.refuses_unknown(words, version):
        members["patternProperties"] = {COMMENT: True}
    needs, variants = sch.facts(words).get("needs", {}), sch.facts(words).get("variants")
    rules = [_needed(switch, keys) for switch, keys in needs.items()]
    rules += _cases(variants, version) if variants else ()
    if rules:
        members["allOf"] = rules
    return members


def _others(schema: Any, version: Version) -> Any:
    return _plain(schema, version) if isinstance(schema, dict) else bool(schema)


def _needed(switch: str, keys: list[str]) -> dict[str, Any]:
    is_on = {"not": {"enum": _FALSE}}
    return {"if": {"properties": {switch: is_on}, "required": [switch]}, "then": {"required": keys}}


def _any_case(words: list[Any]) -> str:
    """A pattern for these words; JSON Schema's regular expressions have no flag for upper and lower case."""
    return f"^(?:{'|'.join(map(_letters, filter(None, words)))})$"


def _letters(word: str) -> str:
    return "".join(f"[{char.upper()}{char.lower()}]" if char.isalpha() else char for char in word)


def _or_auto(schema: sch.Schema, version: Version) -> dict[str, Any]:
    """The key's schema, or the word that a trainer replaces."""
    plain = _plain(schema, version)
    if "auto" not in sch.facts(schema) or sch.takes_any_text(plain):
        return plain
    notes: dict[str, Any] = {
        name: plain.pop(name) for name in ("description", "default", "deprecated") if name in plain
    }
    return {**notes, "anyOf": [plain, {"const": "auto"}]}


def _cases(variants: Mapping[str, Any], version: Version) -> Iterator[dict[str, Any]]:
    for name, schema in variants["cases"].items():
        named = {"type": "string", "pattern": f"^{_letters(name)}$"} if variants["ignore_case"] else {"const": name}
        yield _case(variants, named, schema, version)
    others = variants["others"]
    if "params" in others:
        yield _case(variants, {"enum": others["names"]}, others["params"], version)


def _case(
    variants: Mapping[str, Any], named: Mapping[str, Any], schema: sch.Schema, version: Version
) -> dict[str, Any]:
    return {
        "if": {"properties": {variants["by"]: named}, "required": [variants["by"]]},
        "then": {"properties": {variants["of"]: _plain(schema, version)}},
    }
