"""``dsgen effective CONFIG``: the config as one DeepSpeed version will act on it."""

import argparse
import json
import sys
from collections.abc import Sequence

from dsgen.lint.in_force import Value, in_force
from dsgen.lint.settings import LOADERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("config", metavar="CONFIG", help="a DeepSpeed config; - is stdin")
    parser.add_argument("--deepspeed", metavar="VERSION", help="as this version reads it (default: the newest known)")
    parser.add_argument("--loaded-by", choices=LOADERS, help="who reads the file, and fills in what is auto")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Prints every value; 1 where DeepSpeed refuses one."""
    from dsgen.lint.known_version import known_version
    from dsgen.lint.one_config import read_named
    from dsgen.lint.target import make_target
    from dsgen.lint.versions import show

    version = show(known_version(args.deepspeed))
    file = read_named(args.config, args.loaded_by)
    values = in_force(file, make_target(version, args.loaded_by))
    if args.format == "json":
        _print_json(version, args.loaded_by, values)
    else:
        _print_text(version, values)
    return int(any(value.fate == "refused" for value in values))


def _print_json(version: str, loaded_by: str | None, values: Sequence[Value]) -> None:
    rows = [
        {
            "key": list(value.path),
            "value": value.value,
            "origin": value.origin,
            "fate": value.fate,
            "why": value.why,
        }
        for value in values
    ]
    json.dump({"version": 1, "deepspeed": version, "loaded_by": loaded_by, "values": rows}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _print_text(version: str, values: Sequence[Value]) -> None:
    acting = [value for value in values if value.fate == "acts"]
    lines = [f"What DeepSpeed {version} acts on"]
    lines += [_line(value, "default" if value.origin == "default" else "") for value in acting]
    for fate, title in (("ignored", "Ignored"), ("refused", "Refused")):
        # A default that does nothing here was written by nobody.
        found = [value for value in values if value.fate == fate and value.origin != "default"]
        lines += ["", title, *(_line(value, "") for value in found)] if found else []
    sys.stdout.write("\n".join(lines) + "\n")


def _line(value: Value, note: str) -> str:
    said = ": ".join(word for word in (note, value.why) if word)
    return f"  {'.'.join(value.path):<58}  {_shown(value.value):<14}  {said}".rstrip()


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
