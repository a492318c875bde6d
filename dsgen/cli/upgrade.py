"""``dsgen upgrade PATH...``: what another DeepSpeed version makes of configs, and the edits that keep the training."""

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dsgen.cli.output import replace_file
from dsgen.errors import InputError
from dsgen.lint.files import sources
from dsgen.lint.settings import LOADERS

if TYPE_CHECKING:
    from dsgen.lint.upgrade_differences import Difference
    from dsgen.lint.upgrade_file import UpgradedFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a file with a config (JSON, YAML, code); a folder is searched; - is stdin",
    )
    parser.add_argument("--from", dest="old", required=True, metavar="deepspeed==VERSION", help="the version in use")
    parser.add_argument("--to", dest="new", required=True, metavar="deepspeed==VERSION", help="the version to come")
    parser.add_argument("--loaded-by", choices=LOADERS, help="who reads the files, and fills in what is auto")
    parser.add_argument("--write", action="store_true", help="make the edits, rather than show them")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Prints what changes; 1 if anything does."""
    from dsgen.lint.known_version import known_version
    from dsgen.lint.target import make_target
    from dsgen.lint.upgrade_file import upgrade_file
    from dsgen.lint.versions import show

    old, new = (make_target(show(known_version(text)), args.loaded_by) for text in (args.old, args.new))
    done = []
    for source in sources(args.paths):
        if args.write and source.is_stdin:
            raise InputError.at("standard input cannot be written", help="leave --write out, or name a file")
        found = upgrade_file(source, old, new)
        if found is None:
            if source.name in args.paths or source.is_stdin:
                print(f"{source.name}: left out, it holds no DeepSpeed config", file=sys.stderr)
            continue
        if args.write and found.edited != found.text:
            replace_file(Path(source.name), found.data)
        done.append(found)
    if args.format == "json":
        _print_json(done)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _text(done, old.library, new.library, diff=not args.write))
    return int(any(one.differences or one.errors for found in done for one in found.upgrades))


def _text(done: "list[UpgradedFile]", old: str, new: str, *, diff: bool) -> Iterator[str]:
    count = 0
    for found in done:
        name = found.source.name
        for one in found.upgrades:
            count += len(one.differences) + len(one.errors)
            for difference in sorted(one.differences, key=lambda each: one.file.locate(each.path, "key")):
                place = one.file.locate(difference.path, "key")
                lot = "kept by an edit" if difference.kept else "cannot be kept by an edit"
                yield f"{name}:{place.line}:{place.column}: {_said(difference)}; {lot}"
            for error in one.errors:
                yield f"{name}: {error.message} [{error.code}]; an error with the new version only"
        if found.help:
            yield f"  help: {found.help}"
        if diff:
            before, after = found.text.splitlines(), found.edited.splitlines()
            yield from difflib.unified_diff(before, after, name, f"{name} for {new}", n=1, lineterm="")
    files = f"{len(done)} file{'s' if len(done) != 1 else ''}"
    yield f"{files} from {old} to {new}: {count or 'no'} change{'s' if count != 1 else ''}"


def _said(difference: "Difference") -> str:
    return f"{'.'.join(difference.path)}: {difference.before} -> {difference.after}"


def _print_json(done: "list[UpgradedFile]") -> None:
    files = [
        {
            "file": found.source.name,
            "changes": [
                {"key": list(change.path), "before": change.before, "after": change.after, "kept": change.kept}
                for one in found.upgrades
                for change in one.differences
            ],
            "errors": [
                {"code": error.code, "key": list(error.path or ()), "message": error.message}
                for one in found.upgrades
                for error in one.errors
            ],
            "edited": found.edited,
        }
        for found in done
    ]
    json.dump({"version": 1, "files": files}, sys.stdout, indent=2)
    sys.stdout.write("\n")
