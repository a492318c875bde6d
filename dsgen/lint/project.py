"""What a file is meant for, by its project: flags, then ``[tool.dsgen]``, then pins and the code beside it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsgen.lint.neighbours import Neighbours, forget_scripts
from dsgen.lint.pins import deepspeed_of, forget_pins
from dsgen.lint.settings import Settings, settings_of
from dsgen.lint.target import LintTarget, make_target


def target_of_file(name: str, flags: Mapping[str, Any], settings: Settings, *, isolated: bool = False) -> LintTarget:
    """The target of one file; what neither flags nor its project tell stays unknown.

    Isolated: only the flags count.
    """
    stated = {**_said(settings.target), **_said(flags)}
    if isolated:
        return make_target(**stated)
    file = Path(name).absolute()
    stated["beside"] = beside = Neighbours(file)
    if "deepspeed" not in stated:
        found = deepspeed_of(file.parent)
        if found:
            stated["deepspeed"], stated["origin"] = found
    if "loaded_by" not in stated:
        stated["loaded_by"] = beside.loader
    if "world_size" not in stated:
        stated = {**beside.launched, **stated}
    return make_target(**stated)


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, with what a spec says below it."""
    said = {key: value for key, value in given.items() if value is not None}
    spec = said.pop("spec", None)
    if spec is None:
        return said
    from dsgen.lint.stated import of_spec  # late: it brings the whole spec along

    return {**of_spec(spec), **said}


def forget() -> None:
    """What was read of projects is read anew: a process that lints again (an editor's) meets changed files."""
    settings_of.cache_clear()
    forget_pins()
    forget_scripts()
    if "dsgen.lint.stated" in sys.modules:
        sys.modules["dsgen.lint.stated"].of_spec.cache_clear()
