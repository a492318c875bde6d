"""``dsgen rule CODE...``: the page of a lint rule, with examples of what it finds."""

import argparse
import json

from dsgen.errors import InputError
from dsgen.lint.rule import Rule, every_rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument("codes", nargs="+", metavar="CODE", help="a rule's code or name; dsgen show rules lists them")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output (default: text)")


def run(args: argparse.Namespace) -> int:
    """Prints the pages asked for."""
    from dsgen.report.rule_page import rule_json, rule_text

    rules = [rule for name in args.codes for rule in _rules(name)]
    if args.format == "json":
        print(json.dumps({"version": 1, "rules": [rule_json(rule) for rule in rules]}, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(rule_text(rule) for rule in rules))
    return 0


def _rules(name: str) -> list[Rule]:
    """The rule with this code, or those with this name: each kind of file has its own."""
    found = [rule for rule in every_rule() if name.lower() in (rule.code.lower(), rule.name)]
    if found:
        return found
    from dsgen.lint.names import closest

    near = closest(name, [known for rule in every_rule() for known in (rule.code, rule.name)])
    hint = f"did you mean {near[0]}?" if near else "dsgen show rules lists them"
    raise InputError.at(f"no rule has the code or name {name!r}", help=hint)
