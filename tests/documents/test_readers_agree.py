"""Our readers against the libraries that really load these files: same values, same refusals, true places."""

import json
import math
from collections.abc import Callable
from typing import Any

import hjson
import pytest
from document_texts import HJSON_TOKENS, JSON, JSON_TOKENS, PLAIN, VALUES, mutations, token_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgen.documents.document import DocumentError, Node
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json

REFUSED = object()
READERS: dict[str, tuple[Callable[[str], Node], Callable[[str], Any]]] = {
    "json": (read_json, json.loads),
    "hjson": (read_hjson, hjson.loads),
}


def as_opened(text: str) -> str:
    """What a program sees that opens the file as text: universal newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def theirs(load: Callable[[str], Any], text: str) -> Any:
    try:
        return load(as_opened(text))
    except Exception:  # the hjson library also dies of IndexError, OverflowError and the like
        return REFUSED


def ours(read: Callable[[str], Node], text: str) -> Any:
    try:
        return read(text).value
    except DocumentError as problem:
        error = problem
    assert 0 <= error.start <= len(text)
    assert error.start <= error.end
    assert error.message
    return REFUSED


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and bool(a == b)


def check(dialect: str, text: str) -> None:
    read, load = READERS[dialect]
    mine, library = ours(read, text), theirs(load, text)
    assert same(mine, library), f"{dialect} of {text!r}: ours {mine!r}, the library's {library!r}"


def check_places(read: Callable[[str], Node], text: str, node: Node) -> None:
    """The text of a value, read again on its own, is that value; keys likewise; all in order."""
    piece = text[node.start : node.end]
    braceless = node.members is not None and not piece.startswith("{")
    bare = isinstance(node.value, str) and piece == node.value
    if not braceless and not bare and not piece.startswith("'''"):
        (again,) = read("[" + piece + "]").value
        assert same(again, node.value), piece
    at = node.start
    for member in node.members or ():
        assert at <= member.key_start < member.key_end <= member.node.start <= member.node.end <= max(node.end, 1)
        assert read("{" + text[member.key_start : member.key_end] + ":0}").value == {member.key: 0}
        if member.comma is not None:
            assert text[member.comma] == ","
            assert member.comma >= member.node.end
        check_places(read, text, member.node)
        at = member.node.end
    for item in node.items or ():
        assert at <= item.start <= item.end <= node.end
        check_places(read, text, item)
        at = item.end


@pytest.mark.parametrize("dialect", READERS)
def test_values_equal_the_librarys_on_every_corpus_file(dialect: str, real_texts: list[str]) -> None:
    read, _ = READERS[dialect]
    accepted = 0
    for text in real_texts:
        check(dialect, text)
        if ours(read, text) is not REFUSED:
            accepted += 1
            check_places(read, text, read(text))
    assert accepted > 250


@settings(max_examples=1500, deadline=None)
@given(token_texts(JSON_TOKENS))
def test_json_of_any_tokens(text: str) -> None:
    check("json", text)


@settings(max_examples=1500, deadline=None)
@given(token_texts(HJSON_TOKENS))
def test_hjson_of_any_tokens(text: str) -> None:
    check("hjson", text)


@settings(max_examples=500, deadline=None)
@given(mutations([PLAIN, JSON], HJSON_TOKENS))
def test_hjson_of_mutations(text: str) -> None:
    check("hjson", text)
    check("json", text)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_written_values_come_back_with_true_places(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    check("json", text)
    check_places(read_json, text, read_json(text))
    check("hjson", text)


@settings(max_examples=1000, deadline=None)
@given(token_texts(HJSON_TOKENS))
def test_places_of_any_tokens(text: str) -> None:
    for read in (read_json, read_hjson):
        if ours(read, text) is not REFUSED:
            check_places(read, text, read(text))
