"""Sections of the DeepSpeed schema by path, and what to put into each so that a parser looks at all of its keys."""

from collections.abc import Iterator
from typing import Any

from dsgen.lint import schema as sch

ANY = "*"
"""The step of a path for entries that a config names as it likes."""

# Some keys of plain sections are looked up only where another one stands that the schema does not tell.
_EXTRA: dict[str, dict[str, Any]] = {
    "fp16": {"initial_scale_power": 16},
    "optimizer": {"type": "Adam"},
    "scheduler": {"type": "WarmupLR"},
}


def section(path: str) -> Any:
    """The schema of a section."""
    schema: Any = sch.deepspeed_schema()
    for key in path.split(".") if path else ():
        schema = schema["additionalProperties"] if key == ANY else schema["properties"][key]
    return schema


def sections() -> Iterator[str]:
    """Paths of all objects with keys of their own, the top level first."""
    yield ""
    yield from _below(section(""), "")


def _below(schema: Any, path: str) -> Iterator[str]:
    inner = dict(schema.get("properties", {}))
    if isinstance(schema.get("additionalProperties"), dict):
        inner[ANY] = schema["additionalProperties"]
    for key, value in inner.items():
        at = f"{path}.{key}" if path else key
        if "object" in sch.types(value) and (value.get("properties") or value.get("additionalProperties")):
            yield at
            yield from _below(value, at)


def contents(path: str) -> list[dict[str, Any]]:
    """What to put into a section: nothing, what switches it on, and each choice that it offers."""
    if not path:
        return [{"train_batch_size": 1}]
    schema = section(path)
    on = _needed(schema) | _EXTRA.get(path, {})
    choices = [
        (key, word)
        for key, value in schema["properties"].items()
        for word in value.get("enum", ())
        if isinstance(word, str)
    ]
    return [{}, on, *({**on, key: word} for key, word in choices)]


def around(path: str) -> list[dict[str, Any]]:
    """What has to stand beside each step of a path so that the parser gets there."""
    steps = path.split(".") if path else []
    beside = [_needed(section(".".join(steps[:n]))) for n in range(1, len(steps))]
    return [{"train_batch_size": 1}, *beside] if steps else []


def _needed(schema: Any) -> dict[str, Any]:
    """The least that an object must hold where it is on."""
    keys = schema["properties"]
    needed = [*schema.get("required", ()), *sch.facts(schema).get("needs", {}).get("enabled", ())]
    # Of a key without default a whole number is as good as anything: the look-up is what counts.
    filled = {
        key: _needed(keys[key]) if "object" in sch.types(keys[key]) else keys[key].get("default", 1) for key in needed
    }
    return filled | ({"enabled": True} if "enabled" in keys else {})


def read_elsewhere(path: str, key: str) -> str | None:
    """The file that reads a key, if the parser does not: its own, or that of the section it stands in."""
    schema, named = sch.deepspeed_schema(), None
    for step in [*(path.split(".") if path else ()), key]:
        schema = schema["additionalProperties"] if step == ANY else schema["properties"][step]
        named = sch.facts(schema).get("read_by", named)
    return named


def files() -> list[str]:
    """Every file that the schema names as a reader."""
    read = (read_elsewhere(path, key) for path in sections() for key in section(path)["properties"])
    return sorted({file for file in read if file})
