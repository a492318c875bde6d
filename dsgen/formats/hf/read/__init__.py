"""Training arguments as wishes: from YAML or JSON, or from a literal call in a Python file, which is never run."""

from collections.abc import Mapping
from typing import Any

from dsgen.formats.hf.read.arguments import answers
from dsgen.reading import LeftOut, Reading, Said, wishes_of_said


def read(given: Mapping[str, Any]) -> Reading:
    """What arguments by name fix."""
    found = list(answers(given))
    said: dict[tuple[str, ...], Said] = {}
    for each in found:
        if isinstance(each, Said):
            said.setdefault(each.path, each)
    used = {each.at[0] for each in said.values() if each.at} | {each.key for each in found if isinstance(each, LeftOut)}
    return Reading(
        wishes=wishes_of_said(said.values()),
        said=tuple(said.values()),
        passthrough={key: value for key, value in given.items() if key not in used},
        not_carried=tuple(each for each in found if isinstance(each, LeftOut)),
    )
