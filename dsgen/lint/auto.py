"""What becomes of the word "auto": transformers and accelerate fill some keys in, nobody else does."""

from collections.abc import Mapping
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.mark import Mark, error, info, warning
from dsgen.lint.target import LintTarget

# What a person may lose when these fall back to their defaults: the mode of training itself.
_SWITCHES = ("stage", "enabled", "device")


def fate_of_auto(
    words: Mapping[str, Any], parent: sch.Schema, path: tuple[str, ...], target: LintTarget
) -> Mark | None:
    """The mark for an "auto" that stays; None where the loader fills it, or where nobody knows who loads the file."""
    fillers = sch.facts(words).get("auto", [])
    loader = target.loaded_by
    if loader in fillers or (loader is None and fillers) or loader == "lightning":
        return None
    name = ".".join(path)
    who = f"{loader} does not fill {name!r} in" if loader else f"no loader fills {name!r} in"
    if loader == "deepspeed":
        who = f'DeepSpeed itself does not know the word "auto" ({name!r})'
    if not target.since(sch.facts(words).get("truthy", versions.ALWAYS)):
        message = f"{who}: {target.library} takes any text for true, so {path[0]} is ON"
        return error(path, message, help="write true or false")
    if loader == "accelerate":
        return error(path, f'{who}: accelerate raises at an "auto" it has no value for', help=_write(words, path))
    if sch.is_pydantic(parent, target.deepspeed):
        return _dropped(words, path, who, target)
    if loader is None:
        return info(path, f'{who}: the text "auto" reaches DeepSpeed', help=_write(words, path))
    return error(path, f'{who}: the text "auto" stays where a number is wanted and raises', help=_write(words, path))


def _dropped(words: Mapping[str, Any], path: tuple[str, ...], who: str, target: LintTarget) -> Mark:
    default = words.get("default")
    message = f"{who}: {target.library} drops it and uses the default, {_shown(default)}"
    if path == ("zero_optimization", "stage"):
        message += ": ZeRO is OFF"
    elif path[-1] == "enabled" and default is False:
        message += f": {path[0]} is OFF"
    if target.loaded_by is None:
        return info(path, message, help=_write(words, path))
    make = error if path[-1] in _SWITCHES and target.loaded_by == "deepspeed" else warning
    return make(path, message, help=_write(words, path))


def _write(words: Mapping[str, Any], path: tuple[str, ...]) -> str:
    if path[-1] == "enabled":
        return "write true or false"
    if path == ("zero_optimization", "stage"):
        return "write the stage: 0, 1, 2 or 3"
    default = words.get("default")
    return f"write a value, such as {_shown(default)}" if default is not None else "write the number"


def _shown(default: Any) -> str:
    return {True: "true", False: "false", None: "null"}[default] if isinstance(default, bool | None) else str(default)
