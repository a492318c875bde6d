"""``dsgen plan SPEC``: the plan, its ledger, and why the simpler ones were refused."""

import argparse
import sys

from dsgen.cli.streams import console
from dsgen.planner.job import decide_job, inputs_of
from dsgen.planner.refusal import NothingFitsError
from dsgen.report.plan_view import PlanView, view_of, view_of_refusal
from dsgen.spec.read import read_spec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("spec", metavar="SPEC", help="spec.yaml: the model, the GPUs, the training")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Prints the plan; where nothing fits, the closest one, before the refusal reaches the user."""
    inputs = inputs_of(read_spec(args.spec))
    try:
        job = decide_job(inputs)
    except NothingFitsError as refused:
        _show(view_of_refusal(inputs, refused), args.format)
        raise
    _show(view_of(job), args.format)
    return 0


def _show(view: PlanView, form: str) -> None:
    if form == "json":
        from dsgen.report.plan_json import plan_json

        sys.stdout.write(plan_json(view))
        return
    from dsgen.report.plan_text import print_plan

    print_plan(view, console())
