"""The form of a rule, and the registry that loads rules by the kind of file they are for.

A rule is one file in ``dsgen/lint/rules/<kind>/``, named for the mistake (it must read as "found: NAME"): a decorated
generator of marks whose docstring is the user's page. Adding a file adds a rule; nothing else lists it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dsgen.lint.mark import Mark

Check = Callable[[Any, Any], Iterator[Mark]]
"""(file as values, target) -> marks."""

RULES_FOLDER = Path(__file__).resolve().parent / "rules"
_RULES: "dict[str, Rule]" = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule with its page."""

    code: str
    name: str
    kinds: tuple[str, ...]
    source: str
    """Where in which library the claim can be checked."""
    since: str | None
    """First version of the kind's library for which it holds; None: all."""
    until: str | None
    """First version for which it no longer holds."""
    page: str
    check: Check
    unread: bool
    """Whether it runs on a file that could not be read, too."""
    last: bool
    """Whether it runs after the others, and looks at which findings comments have hidden."""
    about: Set[str] = frozenset()
    """Topics of files of which one must be there for it to find anything; none: it looks at every file."""

    @property
    def title(self) -> str:
        """The page's first paragraph on one line."""
        return " ".join(self.text.split("\n\n")[0].split())

    @property
    def text(self) -> str:
        """The page as Markdown, at the margin."""
        from inspect import cleandoc  # late: it brings the whole of Python's syntax along

        return cleandoc(self.page)


def rule(
    code: str,
    *,
    kinds: tuple[str, ...],
    source: str,
    about: tuple[str, ...] = (),
    since: str | None = None,
    until: str | None = None,
    unread: bool = False,
    last: bool = False,
) -> Callable[[Check], Check]:
    """Registers the decorated generator under a code; its docstring is the page, its name the rule's.

    ``about``: topics (``Readable.topics``) of which a file must have one. They are read off its text before it is
    imported, so they stand there as texts in parentheses.
    """

    def register(check: Check) -> Check:
        name = str(getattr(check, "__name__", "")).replace("_", "-")
        known = _RULES.get(code)
        if known is not None and known.check.__module__ != check.__module__:
            raise ValueError(f"two rules have the code {code}: {known.name} and {name}")
        _RULES[code] = Rule(
            code=code,
            name=name,
            kinds=kinds,
            source=source,
            since=since,
            until=until,
            page=check.__doc__ or "",
            check=check,
            unread=unread,
            last=last,
            about=frozenset(about),
        )
        return check

    return register


def rules_for(kind: str, topics: Set[str] | None = None) -> tuple[Rule, ...]:
    """The rules for one kind of file, by code: all, or those that may find something in a file with these topics.

    Only those are imported, so however many rules there are, a start pays for those that it needs.
    """
    for module, about in _headers(kind):
        if (topics is None or not about or about & topics) and module not in sys.modules:
            import_module(module)
    return tuple(
        rule
        for _, rule in sorted(_RULES.items())
        if kind in rule.kinds and (topics is None or not rule.about or rule.about & topics)
    )


@cache
def _headers(kind: str) -> tuple[tuple[str, Set[str]], ...]:
    """The modules of a kind's folder with what their rule is about, as far as their text tells."""
    folder = RULES_FOLDER / kind
    files = sorted(folder.glob("[!_]*.py"))
    return tuple((f"dsgen.lint.rules.{kind}.{file.stem}", _about(file)) for file in files)


def _about(file: Path) -> Set[str]:
    head = file.read_text("utf-8").partition('"""')[0]
    words = head.partition("about=(")[2].partition(")")[0]
    return frozenset(words.split('"')[1::2])


def known_rules() -> Mapping[str, Rule]:
    """The rules that were loaded so far, by code."""
    return _RULES


def every_rule() -> list[Rule]:
    """The rules for all kinds of files, by code."""
    return sorted({rule for kind in kinds() for rule in rules_for(kind)}, key=lambda rule: rule.code)


def kinds() -> list[str]:
    """Every kind of file that has rules."""
    return sorted(folder.name for folder in RULES_FOLDER.iterdir() if any(folder.glob("[!_]*.py")))
