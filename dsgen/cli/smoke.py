"""``dsgen smoke CONFIG|SPEC|DIR...``: runs each for a few real steps."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from dsgen.errors import InputError, Problem, ProblemsError, RefusedError
from dsgen.smoke.values import Case, Failure, Options, Report, Run

_MOST_PROCESSES = 1024
_MOST_STEPS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of ``dsgen smoke``."""
    defaults = Options()
    parser.add_argument("inputs", nargs="+", metavar="CONFIG|SPEC|DIR", help="ds_config.json, spec.yaml or a folder")
    parser.add_argument("--processes", type=_count(_MOST_PROCESSES), metavar="N", help="one per GPU, two on a CPU")
    parser.add_argument(
        "--steps", type=_count(_MOST_STEPS), default=defaults.steps, metavar="N", help="default %(default)s"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=defaults.timeout,
        metavar="S",
        help="seconds that a config may take, default %(default)g",
    )
    parser.add_argument(
        "--build-timeout",
        type=_seconds,
        default=defaults.build_timeout,
        metavar="S",
        help="seconds for building DeepSpeed's C++ ops, default %(default)g",
    )
    parser.add_argument("--device", choices=("auto", "cpu"), default=defaults.device, help="cpu: leave GPUs alone")
    parser.add_argument(
        "--proof",
        action=argparse.BooleanOptionalAction,
        help="compare with a plain loop in one process; by default on a CPU, where the tolerances were measured",
    )
    parser.add_argument("--native-ops", action="store_true", help="build and use DeepSpeed's own optimizers")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep logs and the configs as they were run")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Exit 0: all ran, as a plain loop does where that was compared. 1: one did not. 2: could not be tried."""
    options = Options(
        processes=args.processes,
        steps=args.steps,
        timeout=args.timeout,
        build_timeout=args.build_timeout,
        device=args.device,
        proof=args.proof,
        native_ops=args.native_ops,
        logs=args.logs,
    )
    inputs = _read(args.inputs)
    cases = [case for case in inputs if isinstance(case, Case)]
    report = Report(machine=None, runs=())
    if cases:
        from dsgen.smoke.run import smoke

        report = smoke(cases, options, _say)
    ran = iter(report.runs)
    # In the order of the command line, the refused among those that ran.
    report = Report(machine=report.machine, runs=tuple(next(ran) if isinstance(x, Case) else x for x in inputs))
    if args.format == "json":
        from dsgen.report.smoke_json import smoke_json

        print(json.dumps(smoke_json(report), indent=2))
    else:
        from dsgen.report.smoke_text import smoke_text

        print(smoke_text(report), end="")
    return 0 if all(one.ok for one in report.runs) else 1


def _read(names: list[str]) -> list[Case | Run]:
    """All inputs; every malformed one is reported before anything is started."""
    from dsgen.smoke.inputs import read_case

    inputs: list[Case | Run] = []
    problems: list[Problem] = []
    for name in names:
        try:
            inputs.append(read_case(name))
        except RefusedError as error:
            inputs.append(Run(config=name, outcome="refused", error=Failure(reason=str(error))))
        except ProblemsError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return inputs


def _say(line: str) -> None:
    print(f"dsgen: {line}", file=sys.stderr, flush=True)


def _count(most: int) -> Callable[[str], int]:
    """A whole number from 1; more than ``most`` is a slip, which nobody could take back once they run."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {most}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value
