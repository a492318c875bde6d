"""``dsgen build SPEC``: writes the config of the decided plan, or a folder that trains with it."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from dsgen.cli.output import Output, differences, save
from dsgen.errors import InputError, Place
from dsgen.formats import format_names, writer
from dsgen.formats.values import Written
from dsgen.planner.buckets import bucket_reasons
from dsgen.planner.job import Job, decide_spec
from dsgen.signals import end_on_signals
from dsgen.spec.read import read_spec
from dsgen.spec.values import Spec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of ``build``."""
    parser.add_argument("spec", metavar="SPEC", help="spec.yaml, or - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        help="the config alone (FILE), or with script and launchers (DIR: ends in /, exists, or has no suffix); "
        "without it, or with -, the config goes to standard output",
    )
    parser.add_argument("--to", metavar="FORMAT", help="another format than the spec's target")
    parser.add_argument("--templates", type=Path, metavar="DIR", help="templates that replace the shipped ones")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if what is there differs")
    parser.add_argument("--explain", action="store_true", help="print each key with its value and its reason")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of what is printed")


def run(args: argparse.Namespace) -> int:
    """Decides, renders everything, and only then touches the disk."""
    from dsgen.report.build import build_json, build_text

    output = None if args.output in (None, "-") else Output.of(args.output)
    if args.check and output is None:
        raise InputError.at("--check needs -o: what should it compare with?")
    job = decide_spec(_spec(args))
    written = _written(job, args, folder=output is not None and output.is_folder)
    if output is None:
        return _print_config(written, args)
    if args.check:
        changes = differences(output, written)
        sys.stdout.write("".join(changes))
        return 1 if changes else 0
    _protect_spec(args.spec, output, written)
    with end_on_signals():  # a build that is stopped leaves no half of it behind
        paths = save(output, written)
    show = build_json if args.format == "json" else build_text
    sys.stdout.write(show(written, paths, explain=args.explain))
    return 0


def _spec(args: argparse.Namespace) -> Spec:
    """The spec, meant for the format of --to: what is legal and how much it takes depend on it."""
    if args.to is not None and args.to not in format_names():
        known = ", ".join(format_names())
        raise InputError.at(f"dsgen can't write {args.to!r} yet", Place(args.spec), f"formats are {known}")
    spec = read_spec(args.spec)
    return spec if args.to is None else replace(spec, target=replace(spec.target, format=args.to))


def _written(job: Job, args: argparse.Namespace, *, folder: bool) -> Written:
    plan = job.decision.chosen.plan
    written: Written = writer(job.target.format).write(
        plan,
        job.shapes,
        job.training,
        job.target,
        job.hardware,
        job.sequence_length,
        bucket_reasons=bucket_reasons(plan, job.shapes),
        templates=args.templates,
        folder=folder,
    )
    return written


def _print_config(written: Written, args: argparse.Namespace) -> int:
    """The config to standard output, the rest beside it: the result can be piped."""
    from dsgen.report.build import build_json, build_text

    if args.format == "json":
        sys.stdout.write(build_json(written, [], explain=args.explain))
        return 0
    sys.stdout.write(next(iter(written.files.values())))
    sys.stderr.write(build_text(written, [], explain=args.explain))
    return 0


def _protect_spec(spec: str, output: Output, written: Written) -> None:
    source = Path(spec)
    for path in output.paths(written):
        if spec != "-" and path.exists() and source.exists() and path.samefile(source):
            raise InputError.at("the output would overwrite the spec", Place(str(path)), "choose another -o")
