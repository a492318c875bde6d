"""``dsgen upgrade PATH...``: what another DeepSpeed version makes of configs, and the edits that keep the training."""

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from dsgen.cli.output import replace_file
from dsgen.errors import InputError
from dsgen.lint.files import Source, sources
from dsgen.lint.settings import LOADERS
from dsgen.lint.upgrade import Difference, Upgrade


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a config; a folder is searched; - is stdin")
    parser.add_argument("--from", dest="old", required=True, metavar="deepspeed==VERSION", help="the version in use")
    parser.add_argument("--to", dest="new", required=True, metavar="deepspeed==VERSION", help="the version to come")
    parser.add_argument("--loaded-by", choices=LOADERS, help="who reads the files, and fills in what is auto")
    parser.add_argument("--write", action="store_true", help="make the edits, rather than show them")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Prints what changes; 1 if anything does."""
    from dsgen.lint.known_version import known_version
    from dsgen.lint.one_config import read_source
    from dsgen.lint.target import make_target
    from dsgen.lint.upgrade import upgrade
    from dsgen.lint.versions import show

    old, new = (make_target(show(known_version(text)), args.loaded_by) for text in (args.old, args.new))
    done = []
    for source in sources(args.paths):
        if source.kind.name != "deepspeed":
            continue
        if args.write and source.is_stdin:
            raise InputError.at("standard input cannot be written", help="leave --write out, or name a file")
        config = read_source(source, args.loaded_by)
        if config.dialect != "json":
            print(f"{source.name}: left out, only JSON and HJSON are edited", file=sys.stderr)
            continue
        found = upgrade(config, old, new)
        if args.write and found.edited != found.file.document.text:
            replace_file(Path(source.name), found.edited.encode("utf-8", "surrogatepass"))
        done.append((source, found))
    if args.format == "json":
        _print_json(done)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _text(done, old.library, new.library, diff=not args.write))
    return int(any(found.differences or found.errors for _, found in done))


def _text(done: list[tuple[Source, Upgrade]], old: str, new: str, *, diff: bool) -> Iterator[str]:
    for source, found in done:
        for difference in sorted(found.differences, key=lambda one: found.file.locate(one.path, "key")):
            place = found.file.locate(difference.path, "key")
            lot = "kept by an edit" if difference.kept else "cannot be kept by an edit"
            yield f"{source.name}:{place.line}:{place.column}: {_said(difference)}; {lot}"
        for error in found.errors:
            yield f"{source.name}: {error.message} [{error.code}]; an error with the new version only"
        if diff:
            before, after = found.file.document.text.splitlines(), found.edited.splitlines()
            yield from difflib.unified_diff(before, after, source.name, f"{source.name} for {new}", n=1, lineterm="")
    files = f"{len(done)} file{'s' if len(done) != 1 else ''}"
    count = sum(len(found.differences) + len(found.errors) for _, found in done)
    yield f"{files} from {old} to {new}: {count or 'no'} change{'s' if count != 1 else ''}"


def _said(difference: Difference) -> str:
    return f"{'.'.join(difference.path)}: {difference.before} -> {difference.after}"


def _print_json(done: list[tuple[Source, Upgrade]]) -> None:
    files = [
        {
            "file": source.name,
            "changes": [
                {"key": list(one.path), "before": one.before, "after": one.after, "kept": one.kept}
                for one in found.differences
            ],
            "errors": [
                {"code": error.code, "key": list(error.path or ()), "message": error.message} for error in found.errors
            ],
            "edited": found.edited,
        }
        for source, found in done
    ]
    json.dump({"version": 1, "files": files}, sys.stdout, indent=2)
    sys.stdout.write("\n")
