"""``dsgen estimate CONFIG``: what a config that exists already takes, in bytes and seconds."""

import argparse
import sys
from dataclasses import replace
from typing import Any

from dsgen.cli.calibration_flag import add_calibration
from dsgen.cli.streams import console
from dsgen.errors import InputError, Place, ProblemsError, RefusedError
from dsgen.estimate.document import Named, read_named
from dsgen.estimate.estimate import estimate, refused
from dsgen.planner.refusal import overflow_words
from dsgen.report.plan_view import PlanView, view_of
from dsgen.spec.read import read_spec, spec_from_text

_LOADERS = ("deepspeed", "transformers", "accelerate", "lightning")
_FLAGS = (
    ("--model", "MODEL", "a name, a folder with config.json, or a size (7B)"),
    ("--gpu", "NAME", "a GPU (dsgen show gpus)"),
    ("--host-memory", "SIZE", "RAM of one node (512GiB)"),
    ("--checkpointing", "KIND", "of activations: none, full, selective or every:2 (no config says it)"),
    ("--attention", "KERNEL", "eager, sdpa or flash (default: sdpa)"),
    ("--method", "METHOD", "what is trained: full, lora or qlora (default: full)"),
)
_COUNTS = (
    ("--gpus-per-node", "GPUs of one node"),
    ("--world-size", "processes in all"),
    ("--sequence-length", "tokens per sequence"),
    ("--micro-batch", "sequences per process, where the file leaves it open"),
)
_VERSIONS = ("deepspeed", "torch", "transformers", "accelerate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "config", metavar="CONFIG", help="a DeepSpeed config, accelerate's with one in it, FSDP2 code, or a spec.yaml"
    )
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="also run the real training code on tensors without contents, on this CPU (needs dsgen[smoke])",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_positive, default=300, help="limit of a simulation (default: 300)"
    )
    add_calibration(parser)
    add_target(parser)


def add_target(parser: argparse.ArgumentParser) -> None:
    """The flags that say what a config can't."""
    group = parser.add_argument_group("what the config runs on, and what it cannot say")
    group.add_argument("--spec", metavar="SPEC", help="a spec.yaml that says all of these; flags say otherwise")
    for flag, metavar, help in _FLAGS:
        group.add_argument(flag, metavar=metavar, help=help)
    for flag, help in _COUNTS:
        group.add_argument(flag, metavar="N", type=_positive, help=help)
    group.add_argument("--loaded-by", choices=_LOADERS, help="who reads the file, and fills in what is auto")
    for library in _VERSIONS:
        group.add_argument(f"--{library}", metavar="VERSION", type=_version, help=f"version of {library}")


def _positive(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _version(text: str) -> str:
    from dsgen.facts.versions import version_key

    try:
        version_key(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version, such as 0.19.8") from None
    return text


def run(args: argparse.Namespace) -> int:
    """Prints the account; 1 where it does not fit, or would not run."""
    strict = args.loaded_by in ("transformers", "accelerate")
    named = read_named(args.config, strict=strict)
    if named.is_spec:
        return _of_spec(named, args)
    base = read_spec(args.spec) if args.spec is not None else None
    found = estimate(named, flags_of(args), base, versions_of(args))
    view = PlanView(
        inputs=found.inputs, shown=found.candidate, reasons=(), alternatives=(), rejected=(), notes=found.notes
    )
    _show_simulated(view, args)
    if (problem := refused(found)) is not None:
        raise problem
    if not found.candidate.fit.fits:
        raise RefusedError.at(f"this does not fit: {overflow_words(found.candidate.fit)}", Place(named.name))
    return 0


def flags_of(args: argparse.Namespace) -> dict[str, Any]:
    """What was given of ``add_target``; None where a flag was not."""
    names = [flag[2:].replace("-", "_") for flag, *_ in (*_FLAGS, *_COUNTS)]
    return {name: getattr(args, name) for name in (*names, "loaded_by")}


def versions_of(args: argparse.Namespace) -> dict[str, str]:
    """The versions that were given."""
    return {name: getattr(args, name) for name in _VERSIONS if getattr(args, name) is not None}


def _of_spec(named: Named, args: argparse.Namespace) -> int:
    """A spec's own plan."""
    from dsgen.planner.job import decide_job, inputs_of
    from dsgen.planner.refusal import NothingFitsError
    from dsgen.report.plan_view import view_of_refusal

    given = [flag for flag, *_ in (*_FLAGS, *_COUNTS) if getattr(args, flag[2:].replace("-", "_")) is not None]
    if given or args.spec is not None:
        message = f"a spec says all of it: {', '.join(given) or '--spec'} can't stand beside one"
        raise InputError.at(message, Place(args.config), "change the spec, or name a DeepSpeed config")
    # Standard input is read once.
    inputs = inputs_of(spec_from_text(named.document.text, named.name, named.folder))
    try:
        job = decide_job(inputs)
    except NothingFitsError as refusal:
        _show(view_of_refusal(inputs, refusal), args.format)
        raise
    _show_simulated(view_of(job), args)
    return 0


def _show_simulated(view: PlanView, args: argparse.Namespace) -> None:
    """The account, with a simulation beside it where one is asked for; without, and then the error, if that fails."""
    if not args.simulate:
        _show(view, args.format)
        return
    from dsgen.simulate.run import simulate

    inputs, plan = view.inputs, view.shown.plan
    sys.stderr.write("simulating\n")
    try:
        simulation = simulate(
            plan,
            inputs.shapes,
            inputs.training,
            inputs.sequence_length,
            inputs.hardware,
            inputs.target,
            timeout=args.timeout,
        )
    except ProblemsError:
        _show(view, args.format)
        raise
    _show(replace(view, simulation=simulation), args.format)


def _show(view: PlanView, form: str) -> None:
    if form == "json":
        from dsgen.report.plan_json import plan_json

        sys.stdout.write(plan_json(view))
        return
    from dsgen.report.plan_text import print_plan

    print_plan(view, console())
