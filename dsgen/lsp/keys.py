"""What the schema says of one key for one version, in Markdown."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.target import LintTarget

_TYPES = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "object": "section",
    "null": "null",
}
_BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}


@dataclass(frozen=True, slots=True)
class Section:
    """An object of the config, with its schema."""

    value: Mapping[str, Any]
    schema: sch.Schema
    path: tuple[str, ...] = ()

    @property
    def known(self) -> dict[str, sch.Schema]:
        """Its keys, of all versions."""
        return sch.properties(self.schema, self.value)


def section_at(config: Mapping[str, Any], path: tuple[str | int, ...], target: LintTarget) -> Section | None:
    """The object at a path; None where the schema knows none there."""
    section = Section(config, sch.deepspeed_schema())
    for key in path:
        inner = section.known.get(str(key))
        if isinstance(key, int) or inner is None:
            return None
        words = sch.keywords(inner, target.deepspeed)
        value = section.value.get(key)
        section = Section(value if isinstance(value, dict) else {}, words, (*section.path, key))
    return section


def said(schema: sch.Schema, target: LintTarget, stage: int | None) -> str:
    """All that is known of a key."""
    words = sch.keywords(schema, target.deepspeed)
    lines = [*_range(words), *_default(words, target, stage), *_versions(schema, words), *_acting(words)]
    return "\n".join([str(words.get("description", "")), "", *(f"- {line}" for line in lines)]).strip()


def types_of(words: Mapping[str, Any]) -> str:
    """The types in a few words."""
    return " or ".join(_TYPES[kind] for kind in sch.types(words) if kind in _TYPES) or "anything"


def _range(words: Mapping[str, Any]) -> Iterator[str]:
    yield f"Type: {types_of(words)}"
    if "enum" in words:
        yield f"Allowed: {', '.join(map(code, words['enum']))}"
    bounds = [f"{relation} {words[word]}" for word, relation in _BOUNDS.items() if word in words]
    if bounds:
        yield f"Range: {', '.join(bounds)}"
    fillers = sch.facts(words).get("auto")
    if fillers:
        yield f'`"auto"` is filled in by {" and ".join(fillers)}'


def _default(words: Mapping[str, Any], target: LintTarget, stage: int | None) -> Iterator[str]:
    if "default" not in words:
        return
    by_stage = sch.facts(words).get("by_stage", {})
    if stage is not None and str(stage) in by_stage:
        yield f"Default: {code(by_stage[str(stage)])} at stage {stage} in {target.library}"
        return
    yield f"Default: {code(words['default'])} in {target.library}"
    if by_stage:
        yield "Default by stage: " + ", ".join(f"{key}: {code(value)}" for key, value in by_stage.items())


def _versions(schema: sch.Schema, words: Mapping[str, Any]) -> Iterator[str]:
    facts = sch.facts(words)
    history = facts.get("defaults") or {
        first: changed["default"] for first, changed in facts.get("keywords", {}).items() if "default" in changed
    }
    if len(history) > 1:
        steps = [f"{code(value)} {_from(first)}" for first, value in history.items()]
        yield f"Default over time: {', '.join(steps)}"
    if "since" in facts:
        yield f"Since DeepSpeed {facts['since']}"
    if "until" in facts:
        yield f"Gone from DeepSpeed {facts['until']} on"
    present = facts.get("renamed_to") or facts.get("alias_of")
    if present:
        yield f"The same as `{present}`"
    elif schema.get("deprecated"):
        yield "An old key"
    if "instead" in facts:
        yield f"Instead: {facts['instead']}"


def _from(first: str) -> str:
    return "at first" if first == versions.ALWAYS else f"from {first}"


def _acting(words: Mapping[str, Any]) -> Iterator[str]:
    facts = sch.facts(words)
    if "stages" in facts:
        yield f"Acts at ZeRO stage {', '.join(map(str, facts['stages']))}"
    if "devices" in facts:
        yield f"Acts with device {' or '.join(facts['devices'])}"
    if "dead" in facts:
        yield f"Does nothing: {facts['dead']}"


def code(value: Any) -> str:
    """A value as it is written, in Markdown."""
    return f"`{json.dumps(value)}`"
