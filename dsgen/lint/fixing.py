"""Applies fixes to a text."""

from collections.abc import Iterable

from dsgen.documents.document import Lines
from dsgen.documents.edits import TextEdit, apply
from dsgen.lint.finding import Fix


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
