"""Checks one value against the keywords of its key: type and range, and what DeepSpeed makes of a wrong one."""

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.coerce import NO, REFUSED, by_pydantic, is_of, json_type
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
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "above"),
    "exclusiveMaximum": (operator.lt, "below"),
}
Outcome = tuple[Kind | None, Mark | None]


@dataclass(frozen=True, slots=True)
class _Key:
    """One key with its value's place, and who meets a wrong value when."""

    path: tuple[str | int, ...]
    words: Mapping[str, Any]
    target: LintTarget
    pydantic: bool
    asleep: str | None

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def late(self) -> str | None:
        """Where a wrong value is met, if not in every training: what the parser checks or opens it always meets."""
        known = sch.facts(self.words)
        is_opened = "object" in sch.types(self.words) and "read_by" not in known
        if known.get("checked") == "once enabled":
            return self.asleep
        return None if self.pydantic or "checked" in known or is_opened else self.asleep or known.get("only")

    def wrong(self, message: str, verb: str, help: str | None = None) -> Mark:
        """It raises, now or where it is met."""
        if self.late:
            return warning(self.path, f"{message} {self.target.library} {verb} {self.late}", help=help)
        return error(self.path, f"{message} {self.target.library} {verb}", help=help)


def check_value(
    value: Any,
    words: Mapping[str, Any],
    parent: sch.Schema,
    path: tuple[str | int, ...],
    target: LintTarget,
    asleep: str | None = None,
) -> Outcome:
    """The kind of mistake and its mark, or twice None.

    ``asleep``: where a wrong value would be met, if that is not in every training.
    """
    types = sch.types(words)
    key = _Key(path, words, target, sch.is_pydantic(parent, target.deepspeed), asleep)
    if not is_of(value, types):
        return _wrong_type(value, key)
    if isinstance(value, float) and not math.isfinite(value):
        if "integer" in types and "number" not in types:
            return _wrong_type(value, key)
        return "value-not-allowed", error(path, f"{key.name} is {value}", help="write a finite number")
    if isinstance(value, float) and target.since(sch.facts(words).get("no_float", versions.NEVER)):
        message = f"{key.name} is {value}; a whole number without a point is wanted: {target.library} raises"
        write = f"write {int(value)}"
        return "whole-number-with-a-point", error(path, message, help=write, fix=replace(write, path, int(value)))
    return _range(value, value, key)


def _wrong_type(value: Any, key: _Key) -> Outcome:
    types, target = sch.types(key.words), key.target
    wanted = " or ".join(_NOUNS[kind] for kind in types if kind != "null" or len(types) == 1)
    noun = "" if value is None or isinstance(value, bool) else f", {_NOUNS[json_type(value)]}"
    found = f"{key.name} is {_shown(value)}{noun}; {wanted} is wanted"
    if key.path == ("zero_optimization",) and isinstance(value, bool):
        stage = "stage 1" if value else "no ZeRO"
        message = f"{key.name}: {_shown(value)} is a form of old times, read as {stage}"
        return "wrong-type", warning(key.path, message, help='write {"stage": 1}')
    if not value and "falsy" in sch.facts(key.words):
        return "wrong-type", warning(key.path, f"{found}; {target.library} takes it for an empty one", help="remove it")
    if goes_by_truth(key.words, key.pydantic, target):
        harm = isinstance(value, str) and value.lower() in NO
        taken = f"{found}; {target.library} takes {'any text' if isinstance(value, str) and value else 'it'}"
        message = f"{taken} for {_shown(bool(value))}"
        return "wrong-type", (error if harm else warning)(key.path, message, help=_instead(value, types))
    made = _made(value, key)
    if (
        made is REFUSED
        and isinstance(value, float)
        and math.isfinite(value)
        and not key.pydantic
        and "integer" in types
    ):
        message = f"{found}; {target.library} calculates with it as it is"
        return "wrong-type", (warning if key.late else error)(key.path, message, help=_instead(value, types))
    if made is REFUSED:
        is_switch = isinstance(value, bool) and "enabled" in key.words.get("properties", {})
        help = f'write {{"enabled": {_shown(value)}}}' if is_switch else _instead(value, types)
        return "wrong-type", key.wrong(f"{found}:", "raises", help)
    ranged = _range(made, value, key)
    if ranged[0]:
        return ranged
    if isinstance(value, float):
        message = f"{found}: {target.library} cuts it to {made}"
        return "wrong-type", warning(key.path, message, help=f"write {made}")
    help = f"write {_shown(made)}"
    message = f"{found}; {target.library} reads it as {_shown(made)}"
    return "wrong-type", info(key.path, message, help=help, fix=replace(help, key.path, made))


def goes_by_truth(words: Mapping[str, Any], pydantic: bool, target: LintTarget) -> bool:
    """Whether the code asks ``if value:`` of a switch, so that any text and number but 0 is true."""
    facts = sch.facts(words)
    if not target.since(facts.get("truthy", versions.ALWAYS)):
        return True
    return not pydantic and "checked" not in facts and "boolean" in sch.types(words)


def _made(value: Any, key: _Key) -> Any:
    """What DeepSpeed makes of a value of another type; REFUSED if it raises."""
    facts, types, target = sch.facts(key.words), sch.types(key.words), key.target
    if isinstance(value, bool) and target.since(facts.get("no_bool", versions.NEVER)):
        return REFUSED
    if isinstance(value, str | float) and not target.since(facts.get("converts", versions.ALWAYS)):
        return REFUSED
    if "text_only" in facts:  # a Path: pydantic 1 makes a str of a number, and no path
        return REFUSED
    if key.pydantic:
        return by_pydantic(value, types, target.since(_MODERN))
    if isinstance(value, bool) and ("integer" in types or "number" in types):
        return int(value)  # True is 1 wherever Python calculates
    if "boolean" in types and (isinstance(value, int) if "any_integer" in facts else value in (0, 1)):
        return bool(value)
    return REFUSED


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


def _range(value: Any, written: Any, key: _Key) -> Outcome:
    words = key.words
    found = f"{key.name} is {_shown(written)};"
    allowed = words.get("enum")
    if allowed is not None and not _is_one_of(value, allowed, words):
        message = f"{found} allowed: {', '.join(map(_shown, allowed))};"
        return "value-not-allowed", _out_of_range(message, key, _nearest(value, allowed))
    if isinstance(value, str) and len(value) < words.get("minLength", 0):
        return "value-not-allowed", _out_of_range(f"{found} it must not be empty;", key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, None
    for keyword, (holds, relation) in _BOUNDS.items():
        if keyword in words and not holds(value, words[keyword]):
            help = f"write {_nearest_number(words[keyword], keyword, words)}"
            return "value-not-allowed", _out_of_range(f"{found} it must be {relation} {words[keyword]};", key, help)
    return None, None


def _is_one_of(value: Any, allowed: list[Any], words: Mapping[str, Any]) -> bool:
    if isinstance(value, str) and "ignore_case" in sch.facts(words):
        return value.upper() in allowed
    return value in allowed


def _out_of_range(message: str, key: _Key, help: str | None = None) -> Mark:
    """Most values out of range are refused; a few are taken for another one."""
    default = key.words.get("default")
    help = help or (f"leave it out: the default is {_shown(default)}" if default is not None else None)
    fallback = sch.facts(key.words).get("otherwise")
    if fallback:
        return warning(key.path, f"{message} {key.target.library} {fallback}", help=help)
    return key.wrong(message, "refuses it", help)


def _nearest_number(bound: Any, keyword: str, words: Mapping[str, Any]) -> str:
    is_least = "inimum" in keyword
    if keyword.startswith("exclusive"):
        if "integer" not in sch.types(words):
            return f"a number {'above' if is_least else 'below'} {bound}"
        bound += 1 if is_least else -1
    return f"{bound} or {'more' if is_least else 'less'}"


def _nearest(value: Any, allowed: list[Any]) -> str | None:
    from dsgen.lint.names import closest

    near = closest(value, [choice for choice in allowed if isinstance(choice, str)]) if isinstance(value, str) else None
    return f"did you mean {near[0]!r}?" if near else None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
