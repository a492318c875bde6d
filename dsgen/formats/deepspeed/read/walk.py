"""A config's keys under their present names, as one DeepSpeed version sees them.

Reads ``schemas/deepspeed.schema.json``: its ``x-dsgen`` objects with since, until, renamed_to, alias_of, dead, auto.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.data import read_schema
from dsgen.documents.document import Path
from dsgen.facts.versions import version_key
from dsgen.reading import LeftOut

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the file."""

    key: str
    """Dotted, under its present name."""
    value: Any
    at: Path
    """As it is written."""
    schema: Schema
    filled: bool = False
    """It is "auto", and whoever loads the file fills it in."""


def deepspeed_schema() -> Schema:
    """The whole schema, as checked in."""
    return read_schema("deepspeed")


def entries(config: Mapping[str, Any], version: str, loader: str) -> Iterator[Entry | LeftOut]:
    """Every value that the version reads; what it does not read is left out with the reason."""
    yield from _section(config, deepspeed_schema(), version, loader, (), ())


def default(key: str, version: str) -> Any:
    """What DeepSpeed takes where a file does not have a key; it has to exist."""
    schema: Schema = deepspeed_schema()
    for step in key.split("."):
        schema = _resolve(schema["properties"][step])
    table = _facts(schema).get("defaults")
    if table is None:
        return schema.get("default")
    return table[max((first for first in table if _reached(version, first)), key=version_key)]


def default_parameter(optimizer: str, name: str) -> Any:
    """What DeepSpeed's constructor of an optimizer takes for a parameter; None where it has no such."""
    cases = _facts(deepspeed_schema()["properties"]["optimizer"])["variants"]["cases"]
    known = _resolve(cases[optimizer])["properties"] if optimizer in cases else {}
    return known.get(name, {}).get("default")


def acting_stages(schema: Schema) -> tuple[int, ...] | None:
    """The stages at which a key does anything; None: all."""
    stages = _facts(schema).get("stages")
    return None if stages is None else tuple(stages)


def _section(
    given: Mapping[str, Any], schema: Schema, version: str, loader: str, at: Path, names: tuple[str, ...]
) -> Iterator[Entry | LeftOut]:
    known = schema.get("properties", {})
    for key, value in given.items():
        here, inner = (*at, key), _resolve(known[key]) if key in known else None
        if inner is None:
            if not _is_comment(key):
                yield LeftOut(_dotted(here), value, "DeepSpeed has no such key")
            continue
        facts = _facts(inner)
        if not _exists(facts, version):
            yield LeftOut(_dotted(here), value, _out_of_its_versions(facts))
        elif "dead" in facts:
            yield LeftOut(_dotted(here), value, str(facts["dead"]))
        else:
            name = str(facts.get("alias_of") or facts.get("renamed_to") or key)
            yield from _value(value, inner, version, loader, here, (*names, name), schema)


def _value(
    value: Any, schema: Schema, version: str, loader: str, at: Path, names: tuple[str, ...], parent: Schema
) -> Iterator[Entry | LeftOut]:
    facts = _facts(schema)
    if isinstance(value, Mapping) and schema.get("properties"):
        yield from _section(value, schema, version, loader, at, names)
    elif at[-1] in ("cpu_offload", "cpu_offload_param"):
        # deepspeed/runtime/zero/config.py: new_param_fn makes {"device": "cpu"} of true.
        device = known_device(value)
        if device is not None:
            yield Entry(".".join((*names, "device")), device, at, schema)
    elif not isinstance(value, bool) and "truthy" in facts and not _reached(version, facts["truthy"]):
        filled = value == "auto" and loader in facts.get("auto", ())
        # Before, any text and number but 0 switched it on.
        yield Entry(".".join(names), value if filled else bool(value), at, schema, filled)
    elif value == "auto" and not _is_a_choice(schema):
        if loader in facts.get("auto", ()):
            yield Entry(".".join(names), value, at, schema, filled=True)
        elif _reads_by_pydantic(parent, version):
            yield LeftOut(_dotted(at), value, f"{loader} does not fill it in: DeepSpeed takes its default")
        else:
            yield LeftOut(_dotted(at), value, f'{loader} does not fill it in: the text "auto" reaches DeepSpeed')
    elif value is not None:
        yield Entry(".".join(names), value, at, schema)


def known_device(switch: Any) -> str | None:
    """The device that the old switches of offload stand for."""
    return {True: "cpu", False: "none"}.get(switch) if isinstance(switch, bool) else None


def _is_a_choice(schema: Schema) -> bool:
    """Whether "auto" is a value among others."""
    return "auto" in schema.get("enum", ()) or (schema.get("default") == "auto")


def _reads_by_pydantic(schema: Schema, version: str) -> bool:
    table = _facts(schema).get("reader", {"0": "plain"})
    return bool(table[max((first for first in table if _reached(version, first)), key=version_key)] == "pydantic")


def _exists(facts: Mapping[str, Any], version: str) -> bool:
    since, until = facts.get("since"), facts.get("until")
    return (since is None or _reached(version, since)) and (until is None or not _reached(version, until))


def _out_of_its_versions(facts: Mapping[str, Any]) -> str:
    if "until" not in facts:
        return f"comes with DeepSpeed {facts['since']}"
    if "renamed_to" in facts:
        return f"called {facts['renamed_to']} since DeepSpeed {facts['until']}"
    return f"not in DeepSpeed {facts['until']} and newer"


def _reached(version: str, first: str) -> bool:
    return version_key(version) >= version_key(first)


def _facts(schema: Schema) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema.get("x-dsgen", {})
    return found


def _resolve(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = deepspeed_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def _is_comment(key: str) -> bool:
    return key.startswith(("_", "#", "//", "$")) or "comment" in key.lower()


def _dotted(at: Path) -> str:
    return ".".join(map(str, at))
