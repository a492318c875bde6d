"""The words of a launch line or script: continued lines joined, quotes resolved, plain variables filled in.

Nothing is run: a variable whose value another program gives stays unknown ("$NAME" in the word).
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_ASSIGNMENT = re.compile(r"(?:export\s+|local\s+|readonly\s+|set\s+)?([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_VARIABLE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w*))", re.ASCII
)
_JOIN = re.compile(r"\\\r?\n[ \t]*")
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "then", "do", "else"})
_MOST_WORDS = 20_000
_LONGEST = 10_000
"""Characters of a word or a value; lines that double a variable grow without bound."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a script."""

    words: tuple[str, ...]
    line: int
    variables: Mapping[str, str] = field(default_factory=dict)
    """What is assigned in front of it, or before."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One ``#SBATCH`` line."""

    words: tuple[str, ...]
    line: int


def commands(text: str) -> Iterator[Command | Directive]:
    """Every command and every directive, in order."""
    variables: dict[str, str] = {}
    for number, line in _logical(text):
        stripped = line.strip()
        if stripped.startswith("#SBATCH"):
            words = _split(stripped.removeprefix("#SBATCH"))
            yield Directive(tuple(expand(word, variables) for word in words), number)
            continue
        if not stripped or stripped.startswith("#"):
            continue
        yield from _of_line(stripped, number, variables)


def _of_line(line: str, number: int, variables: dict[str, str]) -> Iterator[Command]:
    words: list[str] = []
    for word in [*_split(line), ";"]:
        if word not in _SEPARATORS:
            words.append(expand(word, variables))
            continue
        own: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            own[match[1]] = match[2]
            words = words[1:]
        if words and words[0] in ("export", "local", "readonly"):
            own |= {match[1]: match[2] for word in words[1:] if (match := _ASSIGNMENT.fullmatch(word))}
            words = []
        if words:
            yield Command(tuple(words), number, {**variables, **own})
        else:
            variables |= {name: value for name, value in own.items() if _is_plain(value)}
        words = []


def _is_plain(value: str) -> bool:
    """Whether a value is known: no other program gives it."""
    return "`" not in value and "$(" not in value and len(value) < _LONGEST


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, and the number of the first."""
    number, waiting, start = 0, "", 1
    for raw in text.splitlines():
        number += 1
        start = start if waiting else number
        # A comment among continued lines ends nothing for a person, though it does for a shell.
        if waiting and raw.lstrip().startswith("#"):
            continue
        if raw.rstrip().endswith("\\"):
            waiting += raw.rstrip()[:-1] + " "
            continue
        yield start, waiting + raw
        waiting = ""
    if waiting:
        yield start, waiting


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = "#" if not line.lstrip().startswith("#") else ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)
            if len(words) > _MOST_WORDS:
                break
    except ValueError:  # a quote that does not close: what stands before it counts
        return words
    return words


def expand(word: str, variables: Mapping[str, str]) -> str:
    """The word with known variables filled in; an unknown one without a default stays as it is."""

    def value(match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        if name in variables:
            return variables[name]
        return match["default"] if match["default"] is not None else match[0]

    # A person's word holds a handful of variables.
    return _VARIABLE.sub(value, word, count=100) if len(word) < _LONGEST else word
