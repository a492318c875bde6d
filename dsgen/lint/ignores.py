"""``dsgen: ignore[CODE]`` in a comment: findings that somebody has looked at and wants to live with.

It stands at the end of the line that it is for, or alone on the line above. It names codes, so that nothing else is
hidden, and it is a finding itself once it hides nothing any more.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dsgen.documents.document import Document, Lines, Node, Span
from dsgen.lint.finding import Finding
from dsgen.lint.mark import Change, Mark, Step, warning

# Compiled where a file may hold such a comment: most do not.
_IGNORE = r"\bdsgen:\s*ignore\b(?:\[([^\]\r\n]*)\])?"
_COMMENT = r"(?:#|//)[^\r\n]*|/\*(?s:.*?)\*/"
_BLANK_OR_COMMENT = rf"[ \t]*(?:{_COMMENT})?[ \t]*"
# What is left of a comment that says nothing, and what joins an ignore to the words before it.
_SAYS_NOTHING = r"(?:#+|//+|/\*+)[ \t,;:-]*(?:\*/)?"
_JOINT = " \t,;:-"


@dataclass(frozen=True, slots=True)
class Ignore:
    """One such comment."""

    span: Span
    line: int
    """The line that it is for."""
    codes: tuple[str, ...]
    without: tuple[Span, str]
    """The stretch that goes where it is taken out, and what stands there then."""
    used: set[str] = field(default_factory=set)

    def hides(self, finding: Finding) -> bool:
        """Whether it is for this finding; notes that it was needed."""
        fits = finding.code in self.codes and finding.range.line <= self.line <= finding.range.end_line
        if fits:
            self.used.add(finding.code)
        return fits


def ignores(text: str, lines: Lines, comments: Iterable[Span]) -> tuple[Ignore, ...]:
    """Every such comment."""
    found = []
    for comment in comments:
        for match in re.finditer(_IGNORE, text[comment.start : comment.end]):
            names = tuple(name.strip() for name in (match[1] or "").split(",") if name.strip())
            start, end = (comment.start + at for at in match.span())
            line = lines.place(start)[0]
            if re.fullmatch(_BLANK_OR_COMMENT, _line(text, lines, line)):
                line = _next(text, lines, line)
            found.append(Ignore(Span(start, end), line, names, _without(text, comment, start, end)))
    return tuple(found)


def _without(text: str, comment: Span, start: int, end: int) -> tuple[Span, str]:
    """Takes an ignore out of its comment, the comment where it says nothing else, its line where nothing else is."""
    before = text[comment.start : start].rstrip(_JOINT)
    after = text[end : comment.end]
    if not re.fullmatch(_SAYS_NOTHING, before + after.strip(" \t")):
        joint = " " if after.strip() and not after.startswith((" ", "\t", ",", ".", ";")) else ""
        return Span(comment.start, end), before + joint
    line_start = max(text.rfind("\n", 0, comment.start), text.rfind("\r", 0, comment.start)) + 1
    rest = re.compile(r"[ \t]*(\r\n?|\n|\Z)").match(text, comment.end)
    blanks = len(text[line_start : comment.start]) - len(text[line_start : comment.start].rstrip(" \t"))
    if rest is None:
        # In the middle of a line: one blank is enough between what stands around.
        blank = re.compile(r"[ \t]*").match(text, comment.end)
        return Span(comment.start, blank.end() if blank else comment.end), ""
    if line_start + blanks == comment.start:
        return Span(line_start, rest.end()), ""
    return Span(comment.start - blanks, rest.start(1)), ""


def may_hold_ignores(text: str) -> bool:
    """A quick look that spares most files the rest."""
    return "dsgen:" in text


def _next(text: str, lines: Lines, line: int) -> int:
    """The first line below with anything but a comment."""
    below = range(line + 1, len(lines.starts) + 1)
    return next((one for one in below if not re.fullmatch(_BLANK_OR_COMMENT, _line(text, lines, one))), line)


def _line(text: str, lines: Lines, number: int) -> str:
    end = lines.starts[number] if number < len(lines.starts) else len(text)
    return text[lines.starts[number - 1] : end].rstrip("\r\n")


def comments_of(document: Document) -> Iterator[Span]:
    """Comments: what starts like one and stands in no key or value."""
    taken = sorted(_leaves(document.root)) if document.root else []
    at = 0
    for start, end in [*taken, (len(document.text), len(document.text))]:
        for match in re.finditer(_COMMENT, document.text[at:start]):
            yield Span(at + match.start(), at + match.end())
        at = end


def _leaves(node: Node) -> Iterator[tuple[int, int]]:
    for member in node.members or ():
        yield member.key_start, member.key_end
        yield from _leaves(member.node)
    for item in node.items or ():
        yield from _leaves(item)
    if node.members is None and node.items is None:
        yield node.start, node.end


def unused(found: Iterable[Ignore]) -> Iterator[Mark]:
    """The marks of what hides nothing."""
    for ignore in found:
        idle = [code for code in ignore.codes if code not in ignore.used]
        if not ignore.codes:
            # Somebody wanted to hide something: whether that is still so nobody can tell.
            take_out = replace(_rewritten(ignore, "remove the comment", ()), safe=False)
            message = "this comment names no code, so it hides nothing"
            yield warning(ignore.span, message, help="dsgen: ignore[DS310]", fix=take_out)
        elif idle:
            left = tuple(code for code in ignore.codes if code in ignore.used)
            help = f"remove {', '.join(idle)} from it" if left else "remove it"
            yield warning(
                ignore.span,
                f"nothing here has the code {' or '.join(idle)}: this comment hides nothing",
                help=help,
                fix=_rewritten(ignore, help, left),
            )


def _rewritten(ignore: Ignore, description: str, left: tuple[str, ...]) -> Change:
    """The comment with the codes that it needs."""
    span, text = (ignore.span, f"dsgen: ignore[{', '.join(left)}]") if left else ignore.without
    return Change(description, (Step("replace", span, text),))
