"""``dsgen calibrate RUNS.csv -o site.json``: a team's own runs tune the named constants for its cluster."""

import argparse
import os
import sys
from pathlib import Path

from dsgen.cli.output import replace_file
from dsgen.cli.streams import complain
from dsgen.errors import InputError, Place, RefusedError
from dsgen.report.calibration import calibration_json, calibration_text
from dsgen.score.calibrate import calibrate
from dsgen.score.runs import read_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "runs", metavar="RUNS.csv", help="one measured run a row, as for dsgen score (dsgen show columns)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="where the constants go: plan --calibration FILE"
    )
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of what is printed")


def run(args: argparse.Namespace) -> int:
    """Writes the file and says what was tuned; 1 where no constant is, and nothing is written."""
    if os.path.realpath(args.output) == os.path.realpath(args.runs):
        raise InputError.at("are the runs themselves: constants would replace them", Place(args.output), "another -o")
    runs = read_runs(args.runs)
    for problem in runs.problems:
        complain(problem)
    parts = calibrate(runs.rows)
    document = calibration_json(parts, Path(args.runs).name, runs.sha256, len(runs.rows))
    tuned = [name for part in parts.values() for name in part.tuned]
    if tuned:
        replace_file(Path(args.output), document.encode())
    sys.stdout.write(document if args.format == "json" else calibration_text(parts))
    if not tuned:
        raise RefusedError.at(
            f"no constant was tuned, and {args.output} was not written: the defaults stay",
            Place(args.runs),
            "the reasons stand above; more runs, of other sizes, say more",
        )
    sys.stderr.write(f"wrote {args.output}\n")
    return 0
