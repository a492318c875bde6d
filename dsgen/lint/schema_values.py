"""Checks one value against the keywords of its key: type and range, and what DeepSpeed makes of a wrong one."""

import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.coerce import REFUSED, by_pydantic, is_of, json_type
from dsgen.lint.mark import Mark, error, info, replace, warning
from dsgen.lint.slip import Kind
from dsgen.lint.target import LintTarget

_MODERN = "0.15.0"
"""First DeepSpeed on pydantic 2."""
_NOUNS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "text in quotes",
    "array": "a list",
    "object": "an object {...}",
    "null": "null",
}
_SAYS_NO = ("false", "False", "no", "off", "0")
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "above"),
    "exclusiveMaximum": (operator.lt, "below"),
}
Outcome = tuple[Kind | None, Mark | None]


def check_value(
    value: Any, words: Mapping[str, Any], parent: sch.Schema, path: tuple[str | int, ...], target: LintTarget
) -> Outcome:
    """The kind of mistake and its mark, or twice None."""
    types = sch.types(words)
    pydantic = sch.is_pydantic(parent, target.deepspeed)
    if not is_of(value, types):
        return _wrong_type(value, words, pydantic, path, target)
    if isinstance(value, float) and not math.isfinite(value):
        if "integer" in types and "number" not in types:
            return _wrong_type(value, words, pydantic, path, target)
        message = f"{'.'.join(map(str, path))} is {value}"
        return "value-not-allowed", error(path, message, help="write a finite number")
    return _range(value, value, words, path, target)


def _wrong_type(
    value: Any, words: Mapping[str, Any], pydantic: bool, path: tuple[str | int, ...], target: LintTarget
) -> Outcome:
    types = sch.types(words)
    name = ".".join(map(str, path))
    wanted = " or ".join(_NOUNS[kind] for kind in types if kind != "null" or len(types) == 1)
    found = f"{name} is {_shown(value)}, {_NOUNS[json_type(value)]}; {wanted} is wanted"
    if path == ("zero_optimization",) and isinstance(value, bool):
        stage = "stage 1" if value else "no ZeRO"
        return "wrong-type", warning(
            path, f"{name}: {_shown(value)} is a form of old times, read as {stage}", help='write {"stage": 1}'
        )
    facts = sch.facts(words)
    if not target.since(facts.get("truthy", versions.ALWAYS)):
        harm = value in _SAYS_NO and bool(value)
        taken = f"{found}; {target.library} takes {'any text' if isinstance(value, str) and value else 'it'}"
        message = f"{taken} for {_shown(bool(value))}"
        return "wrong-type", (error if harm else warning)(path, message, help=_instead(value, types))
    made = by_pydantic(value, types, target.since(_MODERN)) if pydantic else _by_plain_code(value, types)
    if isinstance(value, bool) and target.since(facts.get("no_bool", versions.NEVER)):
        made = REFUSED
    if isinstance(value, str | float) and not target.since(facts.get("converts", versions.ALWAYS)):
        made = REFUSED
    if made is REFUSED:
        return "wrong-type", error(path, f"{found}: {target.library} raises", help=_instead(value, types))
    ranged = _range(made, value, words, path, target)
    if ranged[0]:
        return ranged
    if isinstance(value, float):
        return "wrong-type", warning(path, f"{found}: {target.library} cuts it to {made}", help=f"write {made}")
    help = f"write {_shown(made)}"
    message = f"{found}; {target.library} reads it as {_shown(made)}"
    return "wrong-type", info(path, message, help=help, fix=replace(help, path, made))


def _by_plain_code(value: Any, types: tuple[str, ...]) -> Any:
    """Code that asks ``if value:`` takes 0 and 1 for false and true; other types fail where they are used."""
    return bool(value) if "boolean" in types and value in (0, 1) else REFUSED


def _instead(value: Any, types: tuple[str, ...]) -> str:
    if "integer" in types and isinstance(value, float) and math.isfinite(value):
        return f"write {math.floor(value) or 1}"
    if isinstance(value, str) and ("integer" in types or "number" in types):
        number = _number(value)
        if number is not None and ("number" in types or number.is_integer()):
            return f"write {int(number) if number.is_integer() else number} without quotes"
    if isinstance(value, str) and "boolean" in types and value.lower() in ("true", "false"):
        return f"write {value.lower()} without quotes"
    return "write " + " or ".join(_NOUNS[kind] for kind in types if kind != "null" or len(types) == 1)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _range(
    value: Any, written: Any, words: Mapping[str, Any], path: tuple[str | int, ...], target: LintTarget
) -> Outcome:
    name = ".".join(map(str, path))
    # Most values out of range are refused; a few are taken for another one.
    fallback = sch.facts(words).get("otherwise")
    make = warning if fallback else error
    lot = f"{target.library} {fallback or 'refuses it'}"
    allowed = words.get("enum")
    if allowed is not None and value not in allowed:
        message = f"{name} is {_shown(written)}; allowed: {', '.join(map(_shown, allowed))}; {lot}"
        return "value-not-allowed", make(path, message, help=_nearest(value, allowed))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, None
    for keyword, (holds, relation) in _BOUNDS.items():
        if keyword in words and not holds(value, words[keyword]):
            message = f"{name} is {_shown(written)}; it must be {relation} {words[keyword]}; {lot}"
            return "value-not-allowed", make(path, message)
    return None, None


def _nearest(value: Any, allowed: list[Any]) -> str | None:
    from dsgen.lint.names import closest

    near = closest(value, [choice for choice in allowed if isinstance(choice, str)]) if isinstance(value, str) else None
    return f"did you mean {near[0]!r}?" if near else None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
