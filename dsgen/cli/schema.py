"""``dsgen schema NAME``: a plain JSON Schema, for editors."""

import argparse
import json
import sys

from dsgen.data import schema_path
from dsgen.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("name", choices=["deepspeed", "spec"], help="of DeepSpeed's config, or of spec.yaml")
    parser.add_argument("--deepspeed", metavar="VERSION", help="as this version reads it (default: the newest known)")


def run(args: argparse.Namespace) -> int:
    """Prints the schema."""
    if args.name == "spec":
        if args.deepspeed:
            raise InputError.at("spec.yaml is the same for every DeepSpeed", help="leave --deepspeed out")
        sys.stdout.write(schema_path("spec").read_text("utf-8"))
        return 0
    from dsgen.lint.known_version import known_version
    from dsgen.lint.plain_schema import plain_schema

    json.dump(plain_schema(known_version(args.deepspeed)), sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0
