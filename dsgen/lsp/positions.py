"""Places in a text, as editors count them: lines from 0, columns in code units of the encoding agreed on.

dsgen counts code points. The protocol's default is UTF-16, where what lies beyond U+FFFF takes two units.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dsgen.documents.document import Lines, Range

Encoding = Literal["utf-8", "utf-16", "utf-32"]
Position = tuple[int, int]
"""Line and column, both from 0, the column in code units."""
_LAST_OF_ONE_UNIT = 0xFFFF


@dataclass(frozen=True)
class Positions:
    """Turns offsets in code points into positions and back."""

    text: str
    encoding: Encoding = "utf-16"

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether every character is one unit in any encoding."""
        return self.encoding == "utf-32" or self.text.isascii()

    def position(self, offset: int) -> Position:
        """Where an offset lies; beyond the end is at the end."""
        offset = max(0, min(offset, len(self.text)))
        line, column = self._lines.place(offset)
        return line - 1, column - 1 if self._is_plain else self._units(self.text[offset - column + 1 : offset])

    def offset(self, position: Position) -> int:
        """The offset of a position. Beyond a line's end is at its end; within a character is before it."""
        line, units = position
        starts = self._lines.starts
        if line >= len(starts):
            return len(self.text)
        start = starts[max(0, line)]
        end = starts[line + 1] if line + 1 < len(starts) else len(self.text)
        content = self.text[start:end].rstrip("\r\n")
        if self._is_plain:
            return start + max(0, min(units, len(content)))
        for at, character in enumerate(content):
            units -= self._units(character)
            if units < 0:
                return start + at
        return start + len(content)

    def stretch(self, place: Range) -> tuple[int, int]:
        """Offsets of a finding's place, as far as it lies in the text."""
        start = self._offset_of(place.line, place.column)
        return start, max(start, self._offset_of(place.end_line, place.end_column))

    def _offset_of(self, line: int, column: int) -> int:
        starts = self._lines.starts
        if line > len(starts):
            return len(self.text)
        return max(0, min(starts[max(line, 1) - 1] + column - 1, len(self.text)))

    def _units(self, text: str) -> int:
        if self.encoding == "utf-8":
            # An editor can hold half of a surrogate pair; it is as long as one in three bytes.
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(ord(character) > _LAST_OF_ONE_UNIT for character in text)
