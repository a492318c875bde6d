"""Standard output and error as they are found: closed, full, narrow, or without Unicode."""

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from dsgen.errors import Problem

if TYPE_CHECKING:
    from rich.console import Console

# Off a terminal nothing is wrapped or cut: this is wider than any table.
_UNBOUNDED = 1000
# Below this a table keeps its width, and the terminal breaks the lines.
_NARROWEST = 40


def prepare() -> None:
    """Makes both streams safe to print to, whatever a message or a file name holds."""
    for name in ("stdout", "stderr"):
        # None: whoever started us closed it. print() would then send errors to standard output.
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives as long as we
        setattr(sys, name, stream)
        # A config can hold what a terminal cannot show (a lone surrogate): it is shown as an escape.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def abandon_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not fail over it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(problem: Problem) -> None:
    """One problem on standard error, if anything can be said there."""
    with contextlib.suppress(OSError):
        print(f"dsgen: {problem}", file=sys.stderr, flush=True)


def console() -> "Console":
    """A rich console on standard output, as wide as what it shows where nobody sets a width."""
    from rich.console import Console

    made = Console(file=sys.stdout)
    made.width = max(made.width, _NARROWEST) if made.is_terminal else _UNBOUNDED
    return made
