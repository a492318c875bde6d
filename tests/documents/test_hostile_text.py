"""Whatever a file holds: a value or a DocumentError, in time linear in its length."""

import time
from collections.abc import Callable

import pytest

from dsgen.documents.document import MAX_DEPTH, DocumentError, Node
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json
from dsgen.documents.source import MAX_BYTES, decode

READERS = [read_json, read_hjson]


def outcome(read: Callable[[str], Node], text: str) -> str | None:
    try:
        read(text)
    except DocumentError as error:
        return error.message
    return None


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("opening", ["[", '{"a":', "{'a':" * 2, '[{"a":'])
def test_deep_nesting_is_refused_with_its_bound(read: Callable[[str], Node], opening: str) -> None:
    assert outcome(read, opening * 100_000) is not None
    if "'" not in opening:
        assert f"{MAX_DEPTH} levels" in str(outcome(read, opening * MAX_DEPTH * 2))


@pytest.mark.parametrize("read", READERS)
def test_nesting_up_to_the_bound_is_read(read: Callable[[str], Node]) -> None:
    assert outcome(read, "[" * MAX_DEPTH + "]" * MAX_DEPTH) is None
    assert outcome(read, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) is not None


@pytest.mark.parametrize(
    "piece",
    [
        "/",
        "/*",
        "'",
        '"',
        "'''",
        "a:1\n",
        "a:n,",
        "{a:t,",
        "1,",
        '"a" ',
        "#",
        "\\",
        "'''\n",
        " ",
        "\n",
        "[1,",
        "a: ",
        ":",
        "-",
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_time_grows_with_the_length_only(read: Callable[[str], Node], piece: str) -> None:
    def seconds(length: int) -> float:
        text = "{" + piece * (length // len(piece))
        begin = time.process_time()
        outcome(read, text)
        return time.process_time() - begin

    # Eight times the text in at most sixteen times the time, above the noise of a busy machine; squares would take 64.
    short, long = min(seconds(20_000), seconds(20_000)), min(seconds(160_000), seconds(160_000))
    assert long < 16 * short + 0.1


def test_bytes_that_are_no_utf_8_text() -> None:
    text = '{"a": 1}'
    assert decode(text.encode()) == text
    assert decode(b"\xef\xbb\xbf{}") == "\ufeff{}"  # the reader of the dialect judges the mark
    for data in (text.encode("utf-16"), text.encode("utf-32"), b"\xff\xfe", b'{"a": "\xe9"}', b"{}" + b" " * MAX_BYTES):
        with pytest.raises(DocumentError):
            decode(data)


def test_utf_16_without_a_mark_and_nul_are_refused() -> None:
    data = '{"a": 1}'.encode("utf-16-le")
    for read in READERS:
        assert outcome(read, decode(data)) is not None


@pytest.mark.parametrize("read", READERS)
def test_lone_surrogates_and_huge_numbers(read: Callable[[str], Node]) -> None:
    assert read(r'["\ud800"]').value == ["\ud800"]
    assert "digits" in str(outcome(read, "[" + "1" * 5000 + "]"))


def test_a_float_beyond_range_is_infinite_in_json_and_fatal_in_hjson() -> None:
    assert read_json("[1e999]").value == [float("inf")]
    assert "too large" in str(outcome(read_hjson, "[1e999]"))
