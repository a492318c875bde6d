"""Configs with one place changed, and configs to change that hold every key which a version reads."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deepspeed_configs import KEYS, SCRAPS, real_values

from dsgen.lint import schema as sch
from dsgen.lint.versions import Version

SIZES = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_BY_TYPE: dict[str, list[Any]] = {
    "boolean": [True, False],
    "integer": [0, 1, 2, -1],
    "number": [0.5, 1.5, -1.5],
    "string": ["", "x", "auto", "2", "true", "1e-3"],
    "array": [[], [1], ["a"]],
    "object": [{}, {"enabled": True}, {"x": 1}],
    "null": [None],
}
_SAMPLES: dict[str, Any] = {"integer": 1, "number": 0.5, "string": "x", "boolean": False, "array": [], "null": None}


@dataclass(frozen=True)
class Mutation:
    """A copy of a config with one place changed."""

    config: Any
    kind: str
    path: tuple[str, ...]

    @property
    def section(self) -> str:
        """The top-level section under which the place lies; "" for the top level itself."""
        return self.path[0] if len(self.path) > 1 else ""


def with_a_micro_batch(config: dict[str, Any]) -> dict[str, Any]:
    """The batch sizes of real configs are for many GPUs; the parser alone sees one process."""
    return {key: value for key, value in config.items() if key not in SIZES} | {"train_micro_batch_size_per_gpu": 1}


def bases(version: Version) -> list[dict[str, Any]]:
    """Real configs, and each section of the schema with all its keys, switched off and on."""
    found = [with_a_micro_batch(config) for config in real_values()]
    for key, schema in sch.deepspeed_schema()["properties"].items():
        if sch.exists(schema, version) and "object" in sch.types(schema) and key not in ("optimizer", "scheduler"):
            for is_on in (False, True):
                found.append(with_a_micro_batch({key: _whole(schema, version, is_on)}))
    plain = {
        key: _sample(schema, version)
        for key, schema in sch.deepspeed_schema()["properties"].items()
        if _is_plain(schema, version) and "object" not in sch.types(schema)
    }
    found.append(with_a_micro_batch(plain))
    for section in ("optimizer", "scheduler"):
        cases = sch.facts(sch.deepspeed_schema()["properties"][section])["variants"]["cases"]
        for name, schema in cases.items():
            params = _whole(sch.resolve(schema), version, False)
            found.append(with_a_micro_batch({section: {"type": name, "params": params}}))
    return found


def _is_plain(schema: sch.Schema, version: Version) -> bool:
    known = sch.facts(schema)
    return sch.exists(schema, version) and not known.keys() & {"alias_of", "renamed_to"} and "deprecated" not in schema


def _whole(schema: sch.Schema, version: Version, is_on: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in schema.get("properties", {}).items():
        if not _is_plain(inner, version):
            continue
        if "object" in sch.types(inner) and "properties" in inner:
            found[key] = _whole(inner, version, is_on)
        else:
            found[key] = is_on if key == "enabled" else _sample(inner, version)
    if isinstance(schema.get("additionalProperties"), dict):
        found["any"] = _whole(schema["additionalProperties"], version, is_on)
    return found


def _sample(schema: sch.Schema, version: Version) -> Any:
    words = sch.keywords(schema, version)
    if words.get("default") is not None:
        return words["default"]
    if "enum" in words:
        return words["enum"][0]
    if "default" in words:
        return None
    kind = next(iter(sch.types(words)), "null")
    return {} if kind == "object" else _SAMPLES[kind]


def mutation(config: Any, rng: random.Random) -> Mutation:
    """A key renamed, misspelt, moved, added, taken out; its value of another type, at a bound, or another word."""
    copy = json.loads(json.dumps(config))
    places = list(_objects(copy, ()))
    # Each level is as likely as the next, whatever it holds.
    path, chosen = rng.choice(places)
    key = rng.choice(sorted(chosen)) if chosen else ""
    where = (*path, key)
    match rng.choice(("renamed", "misspelt", "moved", "added", "removed", "type", "type", "bound", "bound", "word")):
        case "renamed" as kind if chosen:
            chosen[rng.choice(KEYS)] = chosen.pop(key)
        case "misspelt" as kind if len(key) > 2:
            at = rng.randrange(len(key) - 1)
            chosen[key[:at] + key[at + 1 :]] = chosen.pop(key)
        case "moved" as kind if chosen and len(places) > 1:
            value = chosen.pop(key)
            path, other = rng.choice([place for place in places if place[1] is not chosen])
            other[key] = value
        case "removed" as kind if chosen:
            del chosen[key]
        case "bound" as kind if chosen:
            chosen[key] = rng.choice(_near_bounds(where))
        case "word" as kind if chosen and isinstance(chosen[key], str):
            chosen[key] = rng.choice((chosen[key].upper(), chosen[key].lower(), chosen[key] + "x", *_words(where)))
        case "type" as kind if chosen:
            chosen[key] = rng.choice(_BY_TYPE[rng.choice(sorted(_BY_TYPE))])
        case _:
            kind, key = "added", rng.choice(KEYS)
            chosen[key] = rng.choice(SCRAPS)
    return Mutation(copy, kind, (*path, key))


def _schema_at(path: tuple[str, ...]) -> sch.Schema:
    schema: Any = sch.deepspeed_schema()
    for step in path:
        schema = schema.get("properties", {}).get(step, {})
    found: sch.Schema = schema
    return found


def _near_bounds(path: tuple[str, ...]) -> list[Any]:
    """The bounds that a key has in any version, and their neighbours; 0 and 1 stand in where it has none."""
    schema = _schema_at(path)
    tables = [schema, *sch.facts(schema).get("keywords", {}).values()]
    words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    bounds = {table[word] for table in tables for word in words if table.get(word) is not None} or {0, 1}
    return sorted({bound + by for bound in bounds for by in (-1, -0.5, 0, 0.5, 1)}) + [float(bound) for bound in bounds]


def _words(path: tuple[str, ...]) -> list[Any]:
    return list(_schema_at(path).get("enum", ()))


def _objects(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from _objects(inner, (*path, key))
