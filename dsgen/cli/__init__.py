"""The command line: one module per command, imported only when that command is called.

A command module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit code).
Exit 0: done, clean. 1: refused or findings. 2: dsgen could not do the job.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from dsgen import __version__
from dsgen.errors import ProblemsError

# name -> what --help says in one line. The module is dsgen.cli.<name>.
COMMANDS = {
    "plan": "decide how to train, and say why",
    "build": "write the config (or a folder with script and launchers) of the decided plan",
    "smoke": "run a config for a few real steps",
    "show": "list the models, GPUs and nodes that dsgen knows",
}


def _parser(command: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dsgen", description="Plan, write and smoke-run DeepSpeed configs.")
    parser.add_argument("--version", action="version", version=f"dsgen {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
        if name == command:
            import_module(f"dsgen.cli.{name}").add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # Only the called command's module is imported: its flags are added, the others stay names.
    command = next((word for word in argv if not word.startswith("-")), None)
    args = _parser(command).parse_args(argv)
    try:
        return int(import_module(f"dsgen.cli.{args.command}").run(args))
    except ProblemsError as error:
        for problem in error.problems:
            print(f"dsgen: {problem}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (head, less): nothing to say to anyone.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
