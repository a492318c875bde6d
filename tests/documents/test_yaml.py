"""YAML is read as PyYAML's safe loader reads it, with the place of every key and value."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgen.documents.document import DocumentError, Node
from dsgen.documents.yaml_text import read_yaml

SHARED = os.environ.get("DSGEN_SHARED")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def places(node: Node, text: str) -> None:
    """Every scalar and key stands where it is said to stand."""
    for member in node.members or ():
        assert yaml.safe_load(text[member.key_start : member.key_end]) is not None or member.key in ("", "null", "~")
        places(member.node, text)
    for item in node.items or ():
        places(item, text)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.booleans(), st.booleans())
def test_values_are_those_of_the_library(value: Any, flow: bool, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=unicode)
    assert read_yaml(text).value == yaml.safe_load(text)


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED is unset: no corpus of real configs at hand")
def test_real_files_are_read_alike() -> None:
    files = sorted(Path(str(SHARED), "corpus").glob("*yaml*/*"))
    assert len(files) > 100
    for file in files:
        text = file.read_text("utf-8")
        try:
            expected = yaml.safe_load(text)
        except yaml.YAMLError:
            with pytest.raises(DocumentError):
                read_yaml(text)
            continue
        root = read_yaml(text)
        assert root.value == expected or _dates(expected), file
        places(root, text)


def _dates(value: Any) -> bool:
    """Whether it holds what JSON has no word for, which we keep as text."""
    if isinstance(value, dict):
        return any(not isinstance(key, str) or _dates(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(_dates, value))
    return not isinstance(value, None | bool | int | float | str)


TEXT = "# ä\U0001f600\na: &x {b: 1, c: 'two'}\nd:\n  <<: *x\n  c: 3\ne: [1, 2.5, 5e8, on, null, 2024-01-01]\n"


def test_places_and_the_words_of_yaml_1_1() -> None:
    root = read_yaml(TEXT)
    assert root.value == {
        "a": {"b": 1, "c": "two"},
        "d": {"b": 1, "c": 3},
        "e": [1, 2.5, "5e8", True, None, "2024-01-01"],
    }
    members = {member.key: member for member in root.members or ()}
    assert TEXT[members["d"].key_start : members["d"].key_end] == "d"
    inner = members["a"].node.members or ()
    assert [TEXT[one.node.start : one.node.end] for one in inner] == ["1", "'two'"]
    items = members["e"].node.items or ()
    assert [TEXT[item.start : item.end] for item in items] == ["1", "2.5", "5e8", "on", "null", "2024-01-01"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "expected"),
        ("a: 1\n b: 2", "mapping values are not allowed"),
        ("a: !own {b: 1}\nc: !!python/object:os.system ls", "could not determine a constructor"),
        ("--- 1\n--- 2", "another document"),
        ("a: \x00", "no such character"),
        ("a: *nowhere", "undefined alias"),
        ("a: &a [*a]", "levels deep"),
        ("? [1, 2]\n: 3", "a key that is no plain value"),
        ("[" * 900 + "]" * 900, "levels deep"),
        ("[" * 500_000, "depth|nested"),
        (
            "a: &a [1, 1]\n"
            + "".join(
                f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdefghijklmnopq", "bcdefghijklmnopqr", strict=True)
            ),
            "written out",
        ),
        ("a: 2024-99-99", "cannot be read"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        read_yaml(text)
    assert 0 <= caught.value.start <= len(text)
