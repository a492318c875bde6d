"""What a file is meant for, by its project: flags, then ``[tool.dsgen]``, then pins and the code beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsgen.lint.loaders import forget_scripts, loader_of
from dsgen.lint.pins import deepspeed_of, forget_pins
from dsgen.lint.settings import Settings, settings_of
from dsgen.lint.target import LintTarget, make_target


def target_of_file(name: str, flags: Mapping[str, Any], settings: Settings, *, isolated: bool = False) -> LintTarget:
    """The target of one file; what neither flags nor its project tell stays unknown.

    Isolated: only the flags count.
    """
    stated = {**settings.target, **{key: value for key, value in flags.items() if value is not None}}
    if isolated:
        return make_target(**stated)
    file = Path(name).absolute()
    if "deepspeed" not in stated:
        found = deepspeed_of(file.parent)
        if found:
            stated["deepspeed"], stated["origin"] = found
    if "loaded_by" not in stated:
        stated["loaded_by"] = loader_of(file)
    return make_target(**stated)


def forget() -> None:
    """What was read of projects is read anew: a process that lints again (an editor's) meets changed files."""
    settings_of.cache_clear()
    forget_pins()
    forget_scripts()
