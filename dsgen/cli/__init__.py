"""The command line: one module per command, imported only when that command is called.

A command module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit code).
Exit 0: done, clean. 1: refused or findings. 2: dsgen could not do the job.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dsgen import __version__
from dsgen.cli import streams
from dsgen.cli.calibration_flag import in_force
from dsgen.errors import InputError, Place, Problem, ProblemsError

# name -> what --help says in one line. The module is dsgen.cli.<name>.
COMMANDS = {
    "init": "make a first spec: from answers, from this machine, from files that exist",
    "plan": "decide how to train, and say why",
    "build": "write the config (or a folder with script and launchers) of the decided plan",
    "convert": "write a config that exists already in another format",
    "estimate": "show what a config that exists already takes, in bytes and seconds",
    "smoke": "run a config for a few real steps",
    "lint": "find mistakes in DeepSpeed configs and in training code",
    "lsp": "serve an editor: findings, fixes, facts and completions while you type",
    "upgrade": "show what another DeepSpeed version changes",
    "effective": "show a config as a DeepSpeed version acts on it",
    "schema": "print a plain JSON Schema for editors",
    "score": "hold predicted memory and throughput against measured runs",
    "calibrate": "tune the named constants with your own runs",
    "rule": "explain a lint rule, with examples",
    "show": "list the models, GPUs, nodes, lint rules and columns of measured runs that dsgen knows",
}


class _Help(argparse.HelpFormatter):
    """argparse makes one for each flag that is added, and would load shutil (with bz2 and lzma) for the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """The terminal's width, found as shutil.get_terminal_size finds it."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80 if sys.__stdout__ else 80
    except (ValueError, OSError):
        return 80


def _parser(command: str | None) -> argparse.ArgumentParser:
    # No abbreviated flags: a script that says --form must not break when --formula comes along.
    parser = argparse.ArgumentParser(
        prog="dsgen",
        description="Decides how to train a model on given GPUs, writes that for DeepSpeed or FSDP2, runs it for a few "
        "steps, and finds mistakes in what exists already.",
        allow_abbrev=False,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"dsgen {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        description = summary[0].upper() + summary[1:] + "."
        subparser = commands.add_parser(
            name, help=summary, description=description, allow_abbrev=False, formatter_class=_Help
        )
        if name == command:
            import_module(f"dsgen.cli.{name}").add_arguments(subparser)
    return parser


def _refuse_unknown(command: str) -> None:
    from dsgen.facts.tables import nearest

    close = nearest(command, COMMANDS)
    hint = f"did you mean {' or '.join(close)}?" if close else f"commands are {', '.join(COMMANDS)}"
    raise InputError.at(f"there is no command {command!r}", help=hint)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    streams.prepare()
    try:
        exit_code = _run(argv)
        # What is still buffered meets a closed pipe or a full disk here, where it can be said, not at interpreter exit.
        sys.stdout.flush()
    except ProblemsError as error:
        for problem in error.problems:
            streams.complain(problem)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (head, less): nothing to say to anyone, now or at exit.
        streams.abandon_output()
        return 0
    except OSError as error:
        # Files are named where they are opened; what is left is the machine: no space, no memory, no file handles.
        streams.abandon_output()
        place = Place(str(error.filename)) if error.filename else None
        streams.complain(Problem(f"can't go on: {error.strerror or error}", place))
        return 2
    except ModuleNotFoundError as error:
        streams.complain(Problem(f"{error.name} is not installed for {sys.executable}", help="pip install dsgen"))
        return 2
    except KeyboardInterrupt:
        return 130
    return exit_code


def _run(argv: list[str]) -> int:
    # Only the called command's module is imported: its flags are added, the others stay names.
    command = next((word for word in argv if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        _refuse_unknown(command)
    args = _parser(command).parse_args(argv)
    with in_force(args):
        return int(import_module(f"dsgen.cli.{args.command}").run(args))
