"""``dsgen lint PATH...``: mistakes in configs and code that people have already."""

import argparse
from pathlib import Path

from dsgen.cli import lint_output
from dsgen.cli.target_flags import add_target_flags, target_flags
from dsgen.errors import InputError
from dsgen.lint.check import Request, check
from dsgen.lint.files import sources
from dsgen.lint.project import forget
from dsgen.lint.selection import check_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file is linted; a folder is searched; - is stdin")
    parser.add_argument("--stdin-name", metavar="NAME", help="what the text on standard input is called (with -)")
    parser.add_argument("--format", choices=lint_output.FORMS, default="text", help="form of the output")
    parser.add_argument("--statistics", action="store_true", help="show how often each rule found something instead")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="warning",
        help="lowest severity that makes the exit code 1 (default: warning)",
    )
    parser.add_argument("--info", action="store_true", help="show advice, too")
    chosen = parser.add_argument_group("which findings count (codes, or how codes begin, with commas)")
    chosen.add_argument("--select", type=_codes, metavar="CODES", help="only these")
    chosen.add_argument("--ignore", type=_codes, default=(), metavar="CODES", help="not these")
    chosen.add_argument("--baseline", type=Path, metavar="FILE", help="not those that this file knows")
    chosen.add_argument("--write-baseline", type=Path, metavar="FILE", help="write what is found now to such a file")
    fixes = parser.add_argument_group("fixes")
    fixes.add_argument("--fix", action="store_true", help="make the fixes that have one right answer")
    fixes.add_argument("--unsafe-fixes", action="store_true", help="make those that can change the training, too")
    fixes.add_argument("--diff", action="store_true", help="show what fixes would change; change nothing")
    add_target_flags(parser)
    parser.add_argument("--isolated", action="store_true", help="look at no pyproject.toml, pins or code beside")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(check_code(code.strip(), None) for code in text.split(","))


def run(args: argparse.Namespace) -> int:
    """Lints, prints, and says by the exit code whether something was found."""
    _refuse_contradictions(args)
    forget()
    request = Request(
        flags=target_flags(args),
        select=args.select or (),
        ignore=args.ignore,
        fixes="all" if args.unsafe_fixes else "safe" if args.fix or args.diff else "none",
        isolated=args.isolated,
    )
    checked = []
    for source in sources(args.paths, args.stdin_name):
        done = check(source, request)
        if request.fixes != "none" and not args.diff:
            lint_output.write_fixed(done)
        checked.append(done if args.info else done.without_advice())
    if args.write_baseline:
        return lint_output.write_baseline(args.write_baseline, checked)
    checked = lint_output.new_ones(checked, args.baseline, request)
    if args.diff:
        # Nothing is cured by being shown.
        return lint_output.exit_code(checked, args.fail_on) | lint_output.print_diff(checked)
    if args.statistics:
        lint_output.print_statistics(args.format, checked)
    else:
        lint_output.print_findings(args.format, checked, fixing=request.fixes != "none")
    return lint_output.exit_code(checked, args.fail_on)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.stdin_name and "-" not in args.paths:
        raise InputError.at("--stdin-name names the text on standard input, which is not read", help="add - as a PATH")
    if args.diff and (args.statistics or args.format != "text"):
        raise InputError.at("--diff has one form", help="leave --format and --statistics out")
    if args.statistics and args.format not in ("text", "json"):
        raise InputError.at(f"--statistics has no form {args.format!r}", help="write --format text or json")
