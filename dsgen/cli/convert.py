"""``dsgen convert FILE --to FORMAT``: reads one format and writes another, nothing else."""

import argparse
import sys
from pathlib import Path
from typing import Any

from dsgen.cli import estimate as account
from dsgen.cli.output import Output, save
from dsgen.errors import InputError, Place, Problem
from dsgen.estimate.convert import converted
from dsgen.estimate.document import read_named
from dsgen.estimate.estimate import estimate
from dsgen.signals import end_on_signals
from dsgen.spec.read import read_spec
from dsgen.target import Loader

FORMATS = ("deepspeed", "fsdp2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("config", metavar="FILE", help="a DeepSpeed config, accelerate's with one in it, or FSDP2 code")
    parser.add_argument("--to", required=True, choices=FORMATS, help="the format to write")
    parser.add_argument(
        "-o", "--output", metavar="FILE|DIR", help="the file, or a folder with script and launcher; without it, printed"
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of what is printed")
    account.add_target(parser)


def run(args: argparse.Namespace) -> int:
    """Reads, writes, and names what is not carried."""
    from dsgen.report.build import build_json, build_text

    found_flags: dict[str, Any] = account.flags_of(args)
    named = read_named(args.config, strict=args.loaded_by in ("transformers", "accelerate"))
    if named.is_spec:
        raise InputError(Problem("is a spec", Place(named.name), f"dsgen build {args.config} --to {args.to}"))
    base = read_spec(args.spec) if args.spec is not None else None
    found = estimate(named, found_flags, base, account.versions_of(args))
    loader: Loader = "transformers" if args.loaded_by == "transformers" else "deepspeed"
    output = None if args.output in (None, "-") else Output.of(args.output)
    written = converted(found, args.to, loader, folder=output is not None and output.is_folder)
    show = build_json if args.format == "json" else build_text
    if output is None:
        sys.stdout.write(
            show(written, [], explain=False) if args.format == "json" else next(iter(written.files.values()))
        )
        if args.format == "text":
            sys.stderr.write(build_text(written, [], explain=False))
        return 0
    _keep_what_exists(output.paths(written), force=args.force)
    with end_on_signals():
        paths = save(output, written)
    sys.stdout.write(show(written, paths, explain=False))
    return 0


def _keep_what_exists(paths: list[Path], *, force: bool) -> None:
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise InputError(Problem("exists already", Place(str(there[0])), "another -o, or --force to replace it"))
