"""schemas/spec.schema.json, and what the reader asks it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from dsgen.data import read_schema
from dsgen.spec.scalars import DESCRIPTIONS
from dsgen.spec.words import listed

Schema = Mapping[str, Any]


def spec_schema() -> Schema:
    """The schema of a spec."""
    return read_schema("spec")


def flat(schema: Schema) -> Schema:
    """The schema with its ``$ref`` followed; what stands beside the reference wins."""
    if "$ref" not in schema:
        return schema
    target = flat(spec_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    extra = {**target.get("x-dsgen", {}), **beside.get("x-dsgen", {})}
    return {**target, **beside, **({"x-dsgen": extra} if extra else {})}


def alternatives(schema: Schema) -> list[Schema]:
    """The forms that a value may take, where there are several."""
    branches = [flat(branch) for branch in schema.get("anyOf", ())]
    # anyOf of bare "required" (node or gpu) is a condition, not a form.
    return [] if any(set(branch) == {"required"} for branch in branches) else branches


def json_types(schema: Schema) -> tuple[str, ...]:
    """JSON types that the schema names."""
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def scalar_type(schema: Schema) -> str:
    """The key of ``scalars.PARSERS`` for a scalar of this schema."""
    stated: str | None = schema.get("x-dsgen", {}).get("type")
    return stated or ("boolean" if "boolean" in json_types(schema) else "text")


def words_of(schema: Schema) -> tuple[str, ...]:
    """The words that the schema allows, where it allows only words."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return tuple(value for value in values if isinstance(value, str))


def is_supported(schema: Schema) -> bool:
    """False where nothing of it is obeyed yet."""
    return schema.get("x-dsgen", {}).get("supported") is not False


def supported_words(schema: Schema) -> tuple[str, ...]:
    """The allowed words that are obeyed today."""
    supported = schema.get("x-dsgen", {}).get("supported", True)
    if supported is False:
        return ()
    return words_of(supported if supported is not True and words_of(supported) else schema)


def describe(schema: Schema) -> str:
    """What may be written, in words; what is not supported yet is left out."""
    if forms := alternatives(schema):
        return listed(dict.fromkeys(describe(form) for form in forms if is_supported(form)))
    if words := supported_words(schema):
        return listed(words)
    if "object" in json_types(schema):
        properties = schema.get("properties", {})
        if words := supported_words(flat(properties.get("type", {}))):
            return f"{{type: {listed(words)}}}"
        keys = [key for key, value in properties.items() if is_supported(flat(value))]
        return f"a mapping of {', '.join(keys)}" if keys else "a mapping"
    if "array" in json_types(schema):
        return "a list"
    called: str = schema.get("x-dsgen", {}).get("called") or DESCRIPTIONS[scalar_type(schema)]
    return called


@cache
def homes() -> Mapping[str, tuple[str, ...]]:
    """Every key to the dotted paths of the mappings that have it."""
    return _gathered((key, path) for path, key, _ in _keys(spec_schema(), ""))


@cache
def meanings() -> Mapping[str, tuple[str, ...]]:
    """What other programs call a key (x-dsgen.meant), to the dotted paths of the keys that it may stand for."""
    return _gathered(
        (word, f"{path}.{key}")
        for path, key, schema in _keys(spec_schema(), "")
        for word in flat(schema).get("x-dsgen", {}).get("meant", ())
    )


def _gathered(pairs: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for key, path in pairs:
        found.setdefault(key, {})[path] = None
    return {key: tuple(paths) for key, paths in found.items()}


def _keys(schema: Schema, path: str) -> Iterator[tuple[str, str, Schema]]:
    schema = flat(schema)
    for key, value in schema.get("properties", {}).items():
        yield path, key, value
        yield from _keys(value, f"{path}.{key}" if path else key)
    for form in alternatives(schema):
        yield from _keys(form, path)
