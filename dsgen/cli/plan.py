"""``dsgen plan SPEC``: the plan, its ledger and its time, and why the others were passed over."""

import argparse
import sys

from dsgen.cli.calibration_flag import add_calibration
from dsgen.cli.streams import console
from dsgen.errors import DsgenError, InputError
from dsgen.planner.job import decide_job, inputs_of
from dsgen.planner.refusal import NothingFitsError
from dsgen.report.plan_view import PlanView, view_of, view_of_refusal
from dsgen.report.training_run import Ask
from dsgen.spec.read import spec_of
from dsgen.spec.source import Source, read_source
from dsgen.units import parse_count, parse_number

# Of a GPU hour, in any money: beyond it a cost is a slip, and may be no number any more.
_DEAREST = 1e12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("spec", metavar="SPEC", help="spec.yaml: model, GPUs, training; - is standard input")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")
    parser.add_argument(
        "--sweep",
        metavar="KEY=V,V,...",
        action="append",
        default=[],
        help="plan once for each value of a key (gpus, nodes, node, gpu, model, sequence_length, global_batch, a wish) "
        "and show what changes; several of these flags: every combination",
    )
    parser.add_argument("--tokens", metavar="N", help="say how long training on so many tokens takes: 2B, 500M")
    parser.add_argument("--price", metavar="P", help="price of one GPU for one hour: say what --tokens cost")
    add_calibration(parser)
    parser.add_argument("--pin", action="store_true", help="write the decision into the spec, so that it stays")


def run(args: argparse.Namespace) -> int:
    """Prints the plan; where nothing fits, the closest one, before the refusal reaches the user."""
    ask = _ask(args)
    source = read_source(args.spec)
    if args.sweep:
        if args.pin:
            raise InputError.at("--pin and --sweep: one plan is pinned, a sweep makes many")
        return _sweep(source, args, ask)
    inputs = inputs_of(spec_of(source))
    try:
        job = decide_job(inputs)
    except NothingFitsError as refused:
        _show(view_of_refusal(inputs, refused), args.format, ask)
        raise
    if args.pin:
        from dsgen.cli.pin import pin

        pin(job, source, args.spec)
    _show(view_of(job), args.format, ask)
    return 0


def _sweep(source: Source, args: argparse.Namespace, ask: Ask) -> int:
    """A table of plans; 1 where not one of them fits."""
    from dsgen.planner.sweep import axis_of, sweep

    rows = list(sweep(source, [axis_of(text) for text in args.sweep]))
    if args.format == "json":
        from dsgen.report.sweep_json import sweep_json

        sys.stdout.write(sweep_json(rows, ask))
    else:
        from dsgen.report.sweep_text import print_sweep

        print_sweep(rows, ask, console())
    return 0 if any(row.job is not None for row in rows) else 1


def _ask(args: argparse.Namespace) -> Ask:
    if args.price is not None and args.tokens is None:
        raise InputError.at("--price needs --tokens: what costs so much?", help="for example --tokens 2B --price 2.5")
    try:
        tokens = None if args.tokens is None else parse_count(args.tokens)
        price = None if args.price is None else parse_number(args.price)
    except (ValueError, DsgenError) as error:
        raise InputError.at(f"--tokens or --price: {error}", help="for example --tokens 2B --price 2.5") from None
    if (tokens is not None and tokens < 1) or (price is not None and price < 0):
        raise InputError.at("--tokens and --price are positive numbers", help="for example --tokens 2B --price 2.5")
    if price is not None and price > _DEAREST:
        raise InputError.at(f"--price {price:g} is none of a GPU hour", help=f"at most {_DEAREST:g}, in any money")
    return Ask(tokens=tokens, price=price)


def _show(view: PlanView, form: str, ask: Ask) -> None:
    if form == "json":
        from dsgen.report.plan_json import plan_json

        sys.stdout.write(plan_json(view, ask))
        return
    from dsgen.report.plan_text import print_plan

    print_plan(view, console(), ask)
