"""Offsets in code points and positions in code units: there and back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsgen.documents.document import Range
from dsgen.lsp.positions import Encoding, Positions

CALM = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CODECS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
# One to four bytes, one and two units, halves of a pair, and what some take for the end of a line.
TEXTS = st.text(st.sampled_from("aé€\U0001f600\ud800\udc00\ufeff\0\x0b\x0c\x85\u2028\r\n"), max_size=30)


@pytest.mark.parametrize("encoding", CODECS)
@CALM
@given(text=TEXTS)
def test_every_place_is_found_again(encoding: Encoding, text: str) -> None:
    codec, size = CODECS[encoding]
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        line, column = positions.position(offset)
        start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
        if text[offset - 1 : offset + 1] == "\r\n":
            continue  # within a line end is no place in a line
        assert column == len(text[start:offset].encode(codec, "surrogatepass")) // size
        before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        assert line == before.count("\n")
        assert positions.offset((line, column)) == offset


@pytest.mark.parametrize(
    ("encoding", "position", "offset"),
    [
        ("utf-16", (0, 1), 0),  # in the middle of a pair
        ("utf-16", (0, 2), 1),
        ("utf-8", (0, 3), 0),
        ("utf-8", (0, 4), 1),
        ("utf-16", (0, 99), 2),  # beyond the line, before its end
        ("utf-16", (1, 0), 4),
        ("utf-16", (1, 1 << 40), 5),
        ("utf-16", (7, 0), 5),
    ],
)
def test_what_is_no_place_is_the_nearest_before(encoding: Encoding, position: tuple[int, int], offset: int) -> None:
    assert Positions("\U0001f600a\r\nb", encoding).offset(position) == offset


@CALM
@given(text=TEXTS, place=st.tuples(*[st.integers(1, 40)] * 4))
def test_a_finding_beyond_the_text_is_shown_within(text: str, place: tuple[int, int, int, int]) -> None:
    start, end = Positions(text).stretch(Range(*place))
    assert 0 <= start <= end <= len(text)
