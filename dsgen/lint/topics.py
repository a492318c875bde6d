"""What a config has that rules are about: a rule whose topics it lacks is neither imported nor run.

Topics are keys at any depth; the kinds of slips that the walk along the schema finds; ``target.gpu`` and the like where
the target states it; and ``cannot-be-read``, ``duplicate-key`` and ``ignore`` (a comment that hides findings).
"""

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from dsgen.lint.schema_walk import kinds_of_slips
from dsgen.lint.target import LintTarget

if TYPE_CHECKING:
    from dsgen.lint.config_file import ConfigFile

_STATED = ("gpu", "host_memory", "model")


def topics_of(file: "ConfigFile", target: LintTarget) -> Set[str]:
    """The topics of one config."""
    found = {f"target.{name}" for name in _STATED if getattr(target, name) is not None}
    if file.ignores:
        found.add("ignore")
    if not file.is_read:
        return found | {"cannot-be-read"}
    if next(file.document.duplicates(), None):
        found.add("duplicate-key")
    return found.union(_keys(file.value), kinds_of_slips(file, target))


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(inner, dict | list):
            yield from _keys(inner)
