"""``dsgen effective CONFIG``: the config as one DeepSpeed version will act on it."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsgen.cli.target_flags import add_target_flags, target_flags
from dsgen.lint.finding import Finding
from dsgen.lint.in_force import Value, in_force


@dataclass(frozen=True, slots=True)
class _Effective:
    """What is shown."""

    deepspeed: str
    loaded_by: str | None
    values: Sequence[Value]
    errors: Sequence[Finding]
    """Of keys that are right each for itself, and wrong together or for what is stated."""

    @property
    def is_refused(self) -> bool:
        return bool(self.errors) or any(value.fate == "refused" for value in self.values)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("config", metavar="CONFIG", help="a DeepSpeed config; - is stdin")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")
    # Here somebody asks what a version makes of the file, whatever the project has.
    add_target_flags(parser, deepspeed="DeepSpeed version (default: the newest known)")


def run(args: argparse.Namespace) -> int:
    """Prints every value; 1 where DeepSpeed refuses one, or where they do not go together."""
    from dsgen.lint.batch_in_force import with_batch_sizes
    from dsgen.lint.known_version import known_version
    from dsgen.lint.one_config import read_named
    from dsgen.lint.project import target_of_file
    from dsgen.lint.run import config_findings
    from dsgen.lint.settings import Settings
    from dsgen.lint.versions import show

    # What the project says of its version counts for lint; here somebody asks what a version makes of the file.
    flags = target_flags(args) | {"deepspeed": show(known_version(args.deepspeed))}
    target = target_of_file(args.config, flags, Settings(), isolated=True)
    file = read_named(args.config, target.loaded_by)
    values = with_batch_sizes(in_force(file, target), file, target)
    told = {value.path for value in values if value.fate != "acts" and value.origin != "default"}
    errors = [
        finding
        for finding in config_findings(file, target, args.config)
        if finding.severity == "error" and finding.path not in told
    ]
    shown = _Effective(show(target.deepspeed), target.loaded_by, values, errors)
    if args.format == "json":
        _print_json(shown)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _text(shown))
    return int(shown.is_refused)


def _print_json(shown: _Effective) -> None:
    rows = [
        {
            "key": list(value.path),
            "value": value.value,
            "origin": value.origin,
            "fate": value.fate,
            "why": value.why,
        }
        for value in shown.values
    ]
    errors = [
        {"code": error.code, "key": list(error.path or ()), "message": error.message, "help": error.help}
        for error in shown.errors
    ]
    head = {"version": 1, "deepspeed": shown.deepspeed, "loaded_by": shown.loaded_by}
    json.dump({**head, "values": rows, "errors": errors}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _text(shown: _Effective) -> Iterator[str]:
    yield f"What DeepSpeed {shown.deepspeed} acts on"
    for value in shown.values:
        if value.fate == "acts":
            yield _line(value, value.origin if value.origin in ("default", "derived") else "")
    for fate, title in (("ignored", "Ignored"), ("refused", "Refused")):
        # A default that does nothing here was written by nobody.
        found = [value for value in shown.values if value.fate == fate and value.origin != "default"]
        if found:
            yield from ("", title, *(_line(value, "") for value in found))
    if shown.errors:
        yield from ("", "Errors")
        for error in shown.errors:
            yield f"  {error.message} [{error.code}]"
            if error.help:
                yield f"    help: {error.help}"


def _line(value: Value, note: str) -> str:
    said = ": ".join(word for word in (note, value.why) if word)
    return f"  {'.'.join(value.path):<58}  {_shown(value.value):<14}  {said}".rstrip()


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
