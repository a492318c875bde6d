"""``dsgen score RUNS.csv``: predictions of the ledger and the step time beside measured runs."""

import argparse
import sys

from dsgen.cli.calibration_flag import add_calibration
from dsgen.report.score_view import ScoreView
from dsgen.score.predict import score
from dsgen.score.runs import read_runs
from dsgen.score.summary import summary
from dsgen.score.throughput import speeds
from dsgen.score.throughput_summary import throughput_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "runs", metavar="RUNS.csv", help="one measured run a row; the first line names the columns (dsgen show columns)"
    )
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the output")
    parser.add_argument("--rows", action="store_true", help="print every row, too (JSON always has them)")
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="also estimate the named constants without each source: is one of them tuned to a source?",
    )
    add_calibration(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the score; 0 where the file could be read, whatever it says of the ledger."""
    runs = read_runs(args.runs)
    found = None
    if args.leave_one_out:
        from dsgen.score.leave_out import left_out

        found = left_out(runs.rows)
    scored = tuple(score(run) for run in runs.rows)
    timed = speeds(runs.rows)
    view = ScoreView(runs, scored, summary(scored), timed, throughput_summary(timed), found)
    if args.format == "json":
        from dsgen.report.score_json import score_json

        sys.stdout.write(score_json(view))
        return 0
    from dsgen.report.score_text import score_text

    sys.stdout.write(score_text(view, rows=args.rows))
    return 0
