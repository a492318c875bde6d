"""``dsgen lint PATH...``: mistakes in configs that people have already."""

import argparse
import sys

from dsgen.lint.files import Source, sources
from dsgen.lint.finding import RANK, Finding
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target

_LOADERS = ("deepspeed", "transformers", "accelerate", "lightning")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file is linted; a folder is searched")
    parser.add_argument("--format", choices=("text", "json", "github"), default="text", help="form of the output")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="warning",
        help="lowest severity that makes the exit code 1 (default: warning)",
    )
    parser.add_argument("--info", action="store_true", help="show advice, too")
    target = parser.add_argument_group("what the files are meant for (what is not stated is not guessed)")
    target.add_argument("--deepspeed", metavar="VERSION", help="DeepSpeed version (default: the newest known)")
    target.add_argument("--loaded-by", choices=_LOADERS, help="who reads the file")
    target.add_argument("--world-size", type=_positive, metavar="N", help="processes in all")
    target.add_argument("--gpus-per-node", type=_positive, metavar="N", help="processes per node")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Lints, prints, and says by the exit code whether something was found."""
    target = make_target(args.deepspeed, args.loaded_by, args.world_size, args.gpus_per_node)
    checked: list[Source] = []
    findings: list[Finding] = []
    for source in sources(args.paths):
        checked.append(source)
        findings.extend(lint_bytes(source.name, source.data, source.kind, target))
    if not args.info:
        findings = [finding for finding in findings if finding.severity != "info"]
    _print(args.format, checked, findings)
    bound = RANK.get(args.fail_on, len(RANK))
    return int(any(RANK[finding.severity] >= bound for finding in findings))


def _print(form: str, checked: list[Source], findings: list[Finding]) -> None:
    # A config can hold what a terminal cannot show (a lone surrogate): it is shown as an escape.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if form == "json":
        from dsgen.report.lint_json import lint_json

        print(lint_json(len(checked), findings))
    elif form == "github":
        from dsgen.report.lint_github import lint_github

        if findings:
            print(lint_github(findings))
    else:
        from dsgen.report.lint_text import lint_text

        wanted = {finding.file for finding in findings}
        texts = {source.name: source.data.decode(errors="replace") for source in checked if source.name in wanted}
        print(lint_text(len(checked), findings, texts))
