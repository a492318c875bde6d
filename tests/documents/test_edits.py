"""Edits change what they are to change and nothing else."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgen.documents.document import Document
from dsgen.documents.edits import apply, insert, remove, rename, replace
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json

LAID_OUT = """{
  // what the batch is
  "a": 1,  // one
  "b": {"x": 1, "y": [1, 2]},
  # and last
  "c": "three"
}
"""


def document(text: str) -> Document:
    return Document(text, read_hjson(text))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["a"], LAID_OUT.replace('  "a": 1,  // one\n', "")),
        (["b"], LAID_OUT.replace('  "b": {"x": 1, "y": [1, 2]},\n', "")),
        (["c"], LAID_OUT.replace('  "c": "three"\n', "").replace("]},", "]}")),
        (["b", "c"], '{\n  // what the batch is\n  "a": 1  // one\n  # and last\n}\n'),
        (["a", "b", "c"], "{\n  // what the batch is\n  # and last\n}\n"),
    ],
)
def test_removed_members_take_their_lines_with_them(keys: list[str], expected: str) -> None:
    assert apply(LAID_OUT, remove(document(LAID_OUT), (), keys)) == expected


def test_a_member_is_added_below_the_last_in_its_layout() -> None:
    added = apply(LAID_OUT, insert(document(LAID_OUT), (), "d", {"e": 1}))
    assert added == LAID_OUT.replace('"three"\n', '"three",\n  "d": {"e": 1}\n')
    windows = LAID_OUT.replace("\n", "\r\n")
    assert apply(windows, insert(document(windows), (), "d", 1)).replace("\r\n", "") == "".join(
        LAID_OUT.replace('"three"\n', '"three",\n  "d": 1\n').splitlines()
    )
    inline = apply(LAID_OUT, insert(document(LAID_OUT), ("b",), "z", 0))
    assert '{"x": 1, "y": [1, 2], "z": 0}' in inline


@pytest.mark.parametrize(
    "text",
    ["{}", '{"a": 1,}', "a: 1", "a: text\nb: more text", "{a: text\n}", '{"a": 1 // one\n}', "{a: 1, b: text\n}"],
)
def test_additions_to_hjson_are_read_back(text: str) -> None:
    added = apply(text, insert(document(text), (), "new", "x"))
    assert read_hjson(added).value == {**read_hjson(text).value, "new": "x"}


def test_values_and_keys_are_replaced_in_place() -> None:
    assert apply(LAID_OUT, replace(document(LAID_OUT), ("b", "y"), None)) == LAID_OUT.replace("[1, 2]", "null")
    assert apply(LAID_OUT, rename(document(LAID_OUT), ("c",), "d")) == LAID_OUT.replace('"c"', '"d"')
    assert replace(document(LAID_OUT), ("no", "where"), 1) == rename(document(LAID_OUT), ("x",), "y") == []


KEYS = st.text("abcdef", min_size=1, max_size=3)
OBJECTS = st.dictionaries(KEYS, st.none() | st.integers() | st.text() | st.lists(st.booleans(), max_size=2), max_size=6)
INDENTS = st.sampled_from([None, 0, 2, "\t"])


@settings(max_examples=300, deadline=None)
@given(OBJECTS, INDENTS, st.data())
def test_removal_leaves_the_others(value: dict[str, Any], indent: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    keys = data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)) if value else []
    left = apply(text, remove(Document(text, read_json(text)), (), keys))
    assert json.loads(left) == {key: inner for key, inner in value.items() if key not in keys}


@settings(max_examples=300, deadline=None)
@given(OBJECTS, INDENTS, KEYS.map(lambda key: key + "X"))
def test_addition_leaves_the_others(value: dict[str, Any], indent: Any, key: str) -> None:
    text = json.dumps(value, indent=indent)
    added = apply(text, insert(Document(text, read_json(text)), (), key, [1]))
    assert list(json.loads(added).items()) == [*value.items(), (key, [1])]
    assert re.sub(r"\s", "", text)[1:-1] in re.sub(r"\s", "", added)
