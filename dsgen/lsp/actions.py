"""What can be done about findings: each fix, all safe ones at once, and a comment that hides one."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from dsgen.errors import InputError
from dsgen.lint.finding import Finding
from dsgen.lint.target import LintTarget
from dsgen.lsp.analysis import Analysis, analyse, cured
from dsgen.lsp.text import Text

Edit = tuple[int, int, str]
"""Offsets of what is replaced, and by what."""

FIX_ALL = "source.fixAll.dsgen"
QUICK_FIX = "quickfix"
# Beyond this many lines a diff line by line takes too long; then one edit replaces all that differs.
_MOST_LINES = 5000
# Many findings on one screen would each be tried; a person asks about one or two.
_MOST_IGNORES = 4


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done."""

    title: str
    kind: str
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...] = ()
    """What it is about."""
    is_safe: bool = False


def actions(
    analysis: Analysis, start: int, end: int, target: LintTarget, only: tuple[str, ...] = ()
) -> Iterator[Action]:
    """Everything that can be done about what was found in a stretch of the text; ``only`` names kinds."""
    text = analysis.text
    here = [finding for finding in analysis.findings if _meets(text, finding, start, end)]
    if _wanted(QUICK_FIX, only):
        yield from (action for finding in here for action in _fix(text, finding))
    if _wanted(FIX_ALL, only) and any(finding.fix and finding.fix.safe for finding in analysis.findings):
        yield from _all_fixes(analysis)
    if _wanted(QUICK_FIX, only):
        for finding in here[:_MOST_IGNORES]:
            yield from _ignore(analysis, finding, target)


def _wanted(kind: str, only: tuple[str, ...]) -> bool:
    return not only or any(kind == asked or kind.startswith(f"{asked}.") or not asked for asked in only)


def _meets(text: Text, finding: Finding, start: int, end: int) -> bool:
    first, last = text.positions.stretch(finding.range)
    return first <= end and start <= last


def _fix(text: Text, finding: Finding) -> Iterator[Action]:
    if finding.fix is None or not finding.fix.edits:
        return
    edits = tuple((*text.positions.stretch(edit.range), edit.text) for edit in finding.fix.edits)
    description = finding.fix.description[:1].upper() + finding.fix.description[1:]
    note = "" if finding.fix.safe else " (can change the training)"
    yield Action(f"{description}{note}", QUICK_FIX, edits, (finding,), finding.fix.safe)


def _all_fixes(analysis: Analysis) -> Iterator[Action]:
    try:
        after = cured(analysis.text, "safe")
    except InputError:
        return
    edits = tuple(differences(analysis.text.text, after))
    if edits:
        safe = tuple(finding for finding in analysis.findings if finding.fix and finding.fix.safe)
        yield Action("Make all safe fixes of dsgen", FIX_ALL, edits, safe, is_safe=True)


def _ignore(analysis: Analysis, finding: Finding, target: LintTarget) -> Iterator[Action]:
    """A comment that hides the finding, where one does that and nothing else."""
    text = analysis.text
    edit = _comment(text, finding, target)
    if edit is None:
        return
    start, end, new = edit
    edited = Text(text.name, text.text[:start] + new + text.text[end:], text.version, text.encoding)
    after = analyse(edited, was_ours=True)
    if _told(after) == sorted(set(_told(analysis)) - {(finding.code, finding.message)}):
        yield Action(f"Ignore {finding.code} on this line", QUICK_FIX, (edit,), (finding,))


def _told(analysis: Analysis) -> list[tuple[str, str]]:
    return sorted({(finding.code, finding.message) for finding in analysis.findings})


def _comment(text: Text, finding: Finding, target: LintTarget) -> Edit | None:
    start, _ = text.positions.stretch(finding.range)
    line_end = min((at for at in (text.text.find(mark, start) for mark in "\r\n") if at >= 0), default=len(text.text))
    line = text.text[start:line_end]
    known = line.rfind("dsgen: ignore[")
    if known >= 0 and "]" in line[known:]:
        at = start + line.index("]", known)
        return at, at, f", {finding.code}"
    if text.language == "json":
        # Whoever reads plain JSON would refuse the comment.
        return (line_end, line_end, f" // dsgen: ignore[{finding.code}]") if target.loaded_by == "deepspeed" else None
    return line_end, line_end, f"  # dsgen: ignore[{finding.code}]"


def differences(before: str, after: str) -> Iterator[Edit]:
    """The edits that make one text of another, by lines where they are not too many."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > _MOST_LINES:
        yield from _difference(before, after)
        return
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[first], starts[last], "".join(new[new_first:new_last])


def _difference(before: str, after: str) -> Iterator[Edit]:
    start = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    rest = min(len(before), len(after)) - start
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    if start < len(before) - tail or start < len(after) - tail:
        yield start, len(before) - tail, after[start : len(after) - tail]
