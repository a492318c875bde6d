"""Applies fixes: to a text once, and to a file until nothing more can be cured."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from dsgen.documents.document import Lines
from dsgen.documents.edits import TextEdit, apply
from dsgen.lint.finding import Finding, Fix

# A fix can uncover what another fix cures. Real chains are two or three long.
_PASSES = 8

Lint = Callable[[bytes], Sequence[Finding]]


def fixed(text: str, fixes: Iterable[Fix]) -> str:
    """The text after every fix that does not touch what an earlier one has changed."""
    lines = Lines(text)
    taken: list[TextEdit] = []
    for fix in fixes:
        edits = [_offsets(lines, edit.range, edit.text) for edit in fix.edits]
        if not any(_touch(mine, other) for mine in edits for other in taken):
            taken.extend(edits)
    return apply(text, taken)


def _offsets(lines: Lines, place: tuple[int, int, int, int], text: str) -> TextEdit:
    line, column, end_line, end_column = place
    return lines.offset(line, column), lines.offset(end_line, end_column), text


def _touch(one: TextEdit, other: TextEdit) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def cured(data: bytes, encoding: str, lint: Lint, wanted: Callable[[Finding], bool]) -> bytes:
    """The file after every wanted fix that brings no new finding; curing that again changes nothing.

    Edits that touch each other are made one after the other, each on the file that the last one left. What a fix
    uncovers is held against it unless a further fix cures it: nobody's file gets a mistake that it did not have.
    """
    before = lint(data)
    while True:
        for attempt in _attempts(data, encoding, lint, before, wanted):
            after = lint(attempt)
            if _is_better(before, after):
                data, before = attempt, after
                break
        else:
            return data


def _attempts(
    data: bytes, encoding: str, lint: Lint, findings: Sequence[Finding], wanted: Callable[[Finding], bool]
) -> Iterator[bytes]:
    """All fixes and what they lead to, then each alone: one that does harm does not keep the others away."""
    fixes = [finding.fix for finding in findings if finding.fix and wanted(finding)]
    for chosen in [fixes, *([fix] for fix in fixes if len(fixes) > 1)]:
        once = _edited(data, encoding, chosen)
        if once != data:
            yield _followed(once, encoding, lint, wanted)
            yield once


def _followed(data: bytes, encoding: str, lint: Lint, wanted: Callable[[Finding], bool]) -> bytes:
    for _ in range(_PASSES):
        edited = _edited(data, encoding, [finding.fix for finding in lint(data) if finding.fix and wanted(finding)])
        if edited == data:
            break
        data = edited
    return data


def _edited(data: bytes, encoding: str, fixes: Sequence[Fix]) -> bytes:
    return fixed(data.decode(encoding), fixes).encode(encoding) if fixes else data


def _is_better(before: Sequence[Finding], after: Sequence[Finding]) -> bool:
    """Fewer findings, and of no code more than before."""
    had, has = (Counter(finding.code for finding in findings) for findings in (before, after))
    return has < had
