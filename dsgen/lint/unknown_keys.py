"""A key that its section does not have: what was meant, where it belongs, and what is lost."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dsgen.lint import schema as sch
from dsgen.lint.mark import error, rename, warning
from dsgen.lint.names import closest, is_comment
from dsgen.lint.slip import Slip
from dsgen.lint.target import LintTarget

Keys = tuple[str, ...]


def unknown_key(
    key: str, mapping: Mapping[str, Any], schema: sch.Schema, path: Keys, target: LintTarget
) -> Slip | None:
    """The slip of an unknown key of the object at ``path``; None for a note that somebody left there.

    An error where the version refuses the file, and where what the key was plainly meant to say is not said: the run is
    another one than was written down.
    """
    # pydantic sections drop every "auto" before they look at the keys.
    refused = sch.refuses_unknown(schema, target.deepspeed) and mapping[key] != "auto"
    if not refused and is_comment(key):
        return None
    known = sch.properties(schema, mapping)
    section = f"`{'.'.join(path)}`" if path else "the top level"
    lot = f"{target.library} refuses it" if refused else f"{target.library} ignores it without a word"
    message = f"{key!r} is no key of {section}: {lot}"
    here = (*path, key)
    near = closest(
        key, [name for name, inner in known.items() if sch.exists(inner, target.deepspeed) and name not in mapping]
    )
    if near and near[1]:
        change = rename(f"rename it to {near[0]!r}", here, near[0], safe=False)
        if not refused:
            message += f": {_as_if_absent(near[0], sch.keywords(known[near[0]], target.deepspeed))}"
        mark = error(here, message, help=f"did you mean {near[0]!r}?", on="key", fix=change)
        return Slip("unknown-key", mark, (*path, near[0]))
    for home in _homes(key, mapping, schema, path):
        said = home[: len(path)] == path and _stands(mapping, home[len(path) :])
        help = f"write `{'.'.join(home)}`" if home[-1] != key else f"it belongs in `{'.'.join(home[:-1])}`"
        help = f"remove it: `{'.'.join(home)}` is what counts" if said else help
        # Where the section is missing altogether, code may say it.
        make = error if refused or (not said and (len(home) == 1 or home[0] in (*mapping, *path))) else warning
        return Slip("unknown-key", make(here, message, help=help, on="key"), None if said else home)
    homes = [home for home in sch.places_of_keys().get(key, ()) if home != path]
    if 1 <= len(homes) <= 2:
        make = error if refused or not path or () in homes else warning
        named = " or ".join(f"in `{'.'.join(home)}`" if home else "at the top level of the file" for home in homes)
        return Slip("unknown-key", make(here, message, help=f"it belongs {named}", on="key"))
    help = f"did you mean {near[0]!r}?" if near else "remove it, or move it to the file that reads it"
    meant = (*path, near[0]) if near and refused else None
    return Slip("unknown-key", (error if refused else warning)(here, message, help=help, on="key"), meant)


def _homes(key: str, mapping: Mapping[str, Any], schema: sch.Schema, path: Keys) -> Iterator[Keys]:
    """The paths of keys that say it here: by the table of names that others use, or one level further in."""
    foreign = _foreign().get((".".join(path), key.lower()))
    if foreign:
        yield foreign
    if path:
        for name, inner in sch.properties(schema, mapping).items():
            if key in sch.resolve(inner).get("properties", {}):
                yield (*path, name, key)


@cache
def _foreign() -> Mapping[tuple[str, str], Keys]:
    from dsgen.facts.tables import rows  # late: few files hold an unknown key

    return {
        (row["section"], name): tuple(row["key"].split("."))
        for row in rows("foreign_keys")
        for name in row["names"].split()
    }


def _stands(mapping: Mapping[str, Any], path: Keys) -> bool:
    value: Any = mapping
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _as_if_absent(key: str, words: Mapping[str, Any]) -> str:
    if key == "zero_optimization":
        return "ZeRO is off (stage 0)"
    default = words.get("default")
    return f"{key} stays {json.dumps(default)}" if default is not None else f"{key} is not set"
