"""What can go wrong, as values that know how to be shown to a person.

DsgenError                exit 2: dsgen could not do the job
├── InputError            a file, flag or spec is malformed; carries where and what to write instead
└── MissingToolError           something outside dsgen is absent (torch, deepspeed, a compiler)
RefusedError                   exit 1: well-formed, but it does not fit, is not legal, or did not run

Every message is one problem in one line; ``help`` says what to write instead.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file. Lines and columns count from 1, in code points."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        file = printable(self.file)
        if self.line is None:
            return file
        if self.column is None:
            return f"{file}:{self.line}"
        return f"{file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where, and what to write instead."""

    message: str
    place: Place | None = None
    help: str | None = None

    def __str__(self) -> str:
        message = printable(self.message)
        head = f"{self.place}: {message}" if self.place else message
        return f"{head}\n  help: {printable(self.help)}" if self.help else head


def printable(text: str) -> str:
    """The text in one line that commands nothing to a terminal: what is not printable becomes an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class ProblemsError(Exception):
    """Base of both families; holds one or more problems, so that a user sees all of them at once."""

    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems

    @classmethod
    def at(cls, message: str, place: Place | None = None, help: str | None = None) -> "ProblemsError":
        """One problem, written where it is found."""
        return cls(Problem(message, place, help))


class DsgenError(ProblemsError):
    """dsgen could not do the job (bad flag, malformed spec, unreadable file, missing tool)."""


class InputError(DsgenError):
    """A file, flag or spec that is malformed."""


class MissingToolError(DsgenError):
    """Something outside dsgen that the command needs is absent."""


class RefusedError(ProblemsError):
    """Well-formed, but it does not fit, is not legal, or did not run."""

    exit_code = 1
