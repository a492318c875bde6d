from dsgen.documents.document import Document, Lines
from dsgen.documents.hjson_text import read_hjson

TEXT = '{\r\n  "a": {"b": [1, {"c": 2}]},\r\n  "é😀": 1, "a": 3\n}'
DOCUMENT = Document(TEXT, read_hjson(TEXT))


def test_lines_end_at_lf_crlf_and_lone_cr() -> None:
    lines = Lines("a\nb\r\nc\rd")
    assert [lines.place(offset) for offset in (0, 1, 2, 5, 7)] == [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1)]


def test_columns_count_code_points() -> None:
    member = DOCUMENT.member(("é😀",))
    assert member is not None
    assert DOCUMENT.lines.range(member.key_start, member.key_end) == (3, 3, 3, 7)
    assert DOCUMENT.lines.range(member.node.start, member.node.end) == (3, 9, 3, 10)


def test_the_last_of_two_equal_keys_counts() -> None:
    node = DOCUMENT.node(("a",))
    assert node is not None
    assert node.value == 3
    (duplicate,) = DOCUMENT.duplicates()
    assert duplicate.path == ("a",)
    assert (duplicate.first.key_start, duplicate.last.key_start) == (TEXT.index('"a"'), TEXT.rindex('"a"'))


def test_paths_go_through_arrays() -> None:
    text = '{"b": [1, {"c": 2}]}'
    document = Document(text, read_hjson(text))
    node = document.node(("b", 1, "c"))
    assert node is not None
    assert node.value == 2
    assert document.node(("b", 2)) is None
    assert document.node(("b", "c")) is None
    assert document.member(("x", "y")) is None
