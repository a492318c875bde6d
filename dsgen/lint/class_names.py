"""Names of optimizers and schedules: DeepSpeed's own, by version, and those of torch."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.lint import versions
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, replace, warning
from dsgen.lint.names import closest
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.target import LintTarget


def check_name(file: ConfigFile, section: str, target: LintTarget) -> Iterator[Mark]:
    """The mark for a ``type`` that the version at hand does not have."""
    name = file.get(section, "type")
    if not isinstance(name, str):
        return
    variants = deepspeed_schema()["properties"][section]["x-dsgen"]["variants"]
    own = name.lower() if variants["ignore_case"] else name
    path = (section, "type")
    if own in variants["cases"]:
        yield from _own(name, own, variants, path, target)
    elif name not in variants["others"]["names"]:
        known = [*_own_names(section, variants), *variants["others"]["names"]]
        near = closest(name, known)
        message = f"{name!r} is no {section} of DeepSpeed nor of {variants['others']['of']}: the engine raises"
        help = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known[:6])}, ..."
        fix = replace(f"write {near[0]!r}", path, near[0]) if near and near[0].lower() == name.lower() else None
        yield error(path, message, help=help, fix=fix)


def _own(name: str, own: str, variants: Mapping[str, Any], path: tuple[str, str], target: LintTarget) -> Iterator[Mark]:
    since, until = variants["since"].get(own), variants["until"].get(own)
    if not versions.at_least(target.deepspeed, since):
        message = f"{name} came with DeepSpeed {since}; {target.library} does not have it"
        yield error(path, message, help=f"use another {path[0]}, or DeepSpeed {since} and newer")
    if not versions.before(target.deepspeed, until):
        # With no version stated an older one may be in use, which has it.
        make = error if target.stated else warning
        yield make(path, f"{name} was removed in DeepSpeed {until}; {target.library} raises", help="use AdamW or Lamb")


def _own_names(section: str, variants: Mapping[str, Any]) -> list[str]:
    """As people write them: the description of the key spells them."""
    described = deepspeed_schema()["properties"][section]["properties"]["type"]["description"]
    words = described.replace(",", " ").split()
    cases = variants["cases"]
    return [word for word in words if (word.lower() if variants["ignore_case"] else word) in cases]
