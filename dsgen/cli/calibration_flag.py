"""``--calibration``: constants that a team's own runs tuned (dsgen calibrate) in place of the stated ones."""

import argparse
from contextlib import AbstractContextManager, nullcontext


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """The flag, the same wherever figures are predicted."""
    parser.add_argument("--calibration", metavar="FILE", help="constants tuned by your own runs (dsgen calibrate)")


def in_force(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Within it what the command line names is used. Raises InputError for a file that is no calibration."""
    file: str | None = getattr(args, "calibration", None)
    if file is None:
        return nullcontext()
    from dsgen.facts.calibration import calibrated, read_calibration

    return calibrated(read_calibration(file))
