"""The DeepSpeed schema that knows every version, and what it says for one of them.

Each key of ``schemas/deepspeed.schema.json`` is plain JSON Schema plus one ``x-dsgen`` object:

``since``, ``until``      first version with the key, first version without it
``then``                  what happens to it from ``until`` on: refused, or ignored (the default is the neighbours' lot)
``renamed_to``, ``instead``  the key that took its place; what to write, in words
``alias_of``              the other spelling of the same key; both at once are refused
``defaults``, ``keywords``   by the first version of each: the default; schema keywords that differ (null: absent)
``by_stage``              by ZeRO stage: the default where the file gives none
``stages``                ZeRO stages at which it acts; elsewhere it is accepted and does nothing
``feature``               that nothing is done there matters: people count on it
``auto``                  loaders that fill "auto" in; others leave the word
``decides``               false: a switch on which nothing depends
``dead``                  nothing reads it: why
``no_bool``               first version that takes no true or false for this number
``no_float``              first version that takes no 10.0 for this whole number
``clamped``               the least number it is read as
``otherwise``             what happens at a value that is not allowed, where it is not refused
``unknown``               of an object: whether an unknown neighbour is refused or ignored, by version
``truthy``                first version that reads a switch by type; before, any text and number but 0 was true
``converts``              first version that takes anything but the bare numbers of a fixed set
``reader``                of an object, by version: pydantic (converts "2" to 2, drops "auto") or plain look-ups
``variants``              of an object: which schema one key has, by the value of another
``needs``                 of an object: keys that must stand there where a switch of it is on
``checked``               "parser": plain code that raises at a wrong value while it reads the file; otherwise it raises
                          where the value is used, if at all
``any_integer``           a switch that takes whole numbers for true or false, and raises at the rest
``falsy``               of an object: 0, false, "" and [] count as an empty one
``ignore_case``           the words of ``enum`` count in upper and lower case alike
``only``                  of an object: where it acts, if not wherever DeepSpeed trains
``read_by``               the file of DeepSpeed that reads the key, if its parser does not
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dsgen.data import read_schema
from dsgen.lint import versions
from dsgen.lint.versions import Version

Schema = Mapping[str, Any]


def deepspeed_schema() -> Schema:
    """The whole schema, as checked in."""
    return read_schema("deepspeed")


def newest() -> str:
    """The newest DeepSpeed that the schema knows."""
    return str(deepspeed_schema()["x-dsgen"]["newest"])


def facts(schema: Schema) -> Mapping[str, Any]:
    """The ``x-dsgen`` object of a key."""
    found: Mapping[str, Any] = schema.get("x-dsgen", {})
    return found


def resolve(schema: Schema) -> Schema:
    """The schema that a ``$ref`` points to."""
    while "$ref" in schema:
        schema = deepspeed_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def by_version(table: Mapping[str, Any], version: Version) -> Any:
    """The entry with the latest first version that is not after ``version``."""
    reached = [first for first in table if versions.at_least(version, first)]
    return table[max(reached, key=versions.parse)]


def exists(schema: Schema, version: Version) -> bool:
    """Whether that version reads the key."""
    known = facts(schema)
    return versions.at_least(version, known.get("since")) and versions.before(version, known.get("until"))


def keywords(schema: Schema, version: Version) -> dict[str, Any]:
    """The schema's own keywords as they hold for one version."""
    result = dict(resolve(schema))
    known = facts(result)
    if "keywords" in known:
        changed = {**result, **by_version(known["keywords"], version)}
        result = {name: value for name, value in changed.items() if name == "default" or value is not None}
    if "defaults" in known:
        result["default"] = by_version(known["defaults"], version)
    return result


def refuses_unknown(schema: Schema, version: Version) -> bool:
    """Whether that version raises at a key it does not know in this object."""
    return bool(by_version(facts(schema).get("unknown", {"0": "ignored"}), version) == "refused")


def switch_of(schema: Schema) -> Schema | None:
    """The ``enabled`` of an object, where that decides whether the rest acts."""
    switch: Schema | None = schema.get("properties", {}).get("enabled")
    return switch if switch is not None and facts(switch).get("decides", True) else None


def is_pydantic(schema: Schema, version: Version) -> bool:
    """Whether pydantic reads this object."""
    return bool(by_version(facts(schema).get("reader", {"0": "plain"}), version) == "pydantic")


def types(schema: Schema) -> tuple[str, ...]:
    """The types that a schema names; empty: any."""
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def takes_any_text(words: Mapping[str, Any]) -> bool:
    """Whether any text is a right value, so that "auto" is one text among others."""
    return "string" in types(words) and "enum" not in words


def variant(schema: Schema, value: Mapping[str, Any]) -> tuple[str, Schema] | None:
    """Which key of an object has its own schema because of another key's value, and that schema."""
    variants = facts(schema).get("variants", {})
    chosen = value.get(variants.get("by"))
    if not isinstance(chosen, str):
        return None
    case = variants["cases"].get(chosen.lower() if variants["ignore_case"] else chosen)
    others = variants["others"]
    if case is None and chosen in others["names"]:
        case = others.get("params")
    return (variants["of"], resolve(case)) if case else None


def properties(schema: Schema, value: Mapping[str, Any]) -> dict[str, Schema]:
    """Keys of an object with their schemas, given what else stands in it."""
    known = dict(schema.get("properties", {}))
    special = variant(schema, value)
    if special:
        known[special[0]] = special[1]
    return known


@cache
def places_of_keys() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Every key, and the sections in which it stands; for keys that were put in the wrong one."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for path in _telling_paths(deepspeed_schema(), ()):
        found[path[-1]] = (*found.get(path[-1], ()), path[:-1])
    return found


def _telling_paths(schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of keys whose name tells their section: not those of sections that are gone, or for a special use.

    Deep trees hold words that anyone uses for anything (``method``, ``num_workers``, ``version``).
    """
    for key, inner in schema.get("properties", {}).items():
        yield (*path, key)
        if not facts(inner).keys() & {"only", "until"} and (not path or path[0] == "zero_optimization"):
            yield from _telling_paths(inner, (*path, key))
