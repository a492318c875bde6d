"""What is seen of a text that is still being written."""

import json
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsgen.documents.document import Node
from dsgen.documents.json_text import read_json
from dsgen.documents.yaml_text import read_yaml
from dsgen.lsp.outline import Language, outline
from dsgen.lsp.yaml_outline import yaml_outline

CALM = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYS = st.text("ab_é", min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(st.characters(codec="utf-8"), max_size=5)
OBJECTS = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3), lambda inner: st.dictionaries(KEYS, inner | SCALARS, max_size=3)
)


def places(node: Node) -> list[tuple[str, int, int, int, int]]:
    found = []
    for member in node.members or ():
        found.append((member.key, member.key_start, member.key_end, member.node.start, member.node.end))
        found += places(member.node)
    return found


def is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(is_plain, value.values()))
    return not isinstance(value, str) or "\\" not in json.dumps(value, ensure_ascii=False) + repr(value)


@CALM
@given(value=OBJECTS, indent=st.sampled_from([None, 2]))
def test_of_a_finished_text_it_sees_what_the_reader_reads(value: dict[str, object], indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    (root,) = outline(text, "json").roots
    read = read_json(text)
    assert places(root) == places(read)
    if is_plain(value):  # escapes are not undone
        assert root.value == value


@CALM
@given(value=OBJECTS.filter(is_plain))
def test_a_dict_in_code_is_seen_as_it_is(value: dict[str, object]) -> None:
    for root in outline(f"x = f({{}})\nconfig = {value!r}\n", "python").roots[1:]:
        assert root.value == value


def test_of_finished_yaml_it_sees_what_the_reader_reads() -> None:
    text = """\
# a comment
compute_environment: LOCAL_MACHINE # another
deepspeed_config:
  zero_stage: 2
  "offload_optimizer_device": 'cpu'
  inner:
    deep: true

  gradient_clipping: 1.0
machine_rank: 0
none:
"""
    root, _ = yaml_outline(text)
    assert root.value == read_yaml(text).value
    assert places(root) == [
        (key, start, end, first, last)
        if not isinstance(value, dict) and value is not None
        else (key, start, end, *_of(root, first, key))
        for (key, start, end, first, last), value in zip(places(read_yaml(text)), _values(read_yaml(text)), strict=True)
    ]


def _values(node: Node) -> list[object]:
    return [v for member in node.members or () for v in [member.node.value, *_values(member.node)]]


def _of(root: Node, start: int, key: str) -> tuple[int, int]:
    """Where the outline has a section: PyYAML ends one at the next token."""
    found = next(place for place in places(root) if place[0] == key)
    return found[3], found[4]


# Text with the cursor at |; the keys to the object around it, and the key whose value is wanted.
WANTED: list[tuple[Language, str, tuple[object, ...] | None, str | None]] = [
    ("json", "|", (), None),
    ("json", "{|", (), None),
    ("json", "{|}", (), None),
    ("json", '{"a|', (), None),
    ("json", '{"a": |', (), "a"),
    ("json", '{"a": {"b|', ("a",), None),
    ("json", '{"a" {"b|', ("a",), None),
    ("json", '{"a": {"b": 1|', ("a",), "b"),
    ("json", '{"a": {"b": 1, |', ("a",), None),
    ("json", '{"a": {"b": 1 |', None, None),
    ("json", '{"a": {"b": 1\n|', ("a",), None),
    ("json", '{"a": {"b": 1}|', None, None),
    ("json", '{"a": {"b": 1},|', (), None),
    ("json", '{"a": {"b": ["x", |', None, None),
    ("json", '{"a": [{"b": |', ("a", 0), "b"),
    ("json", '{"a": "b|", "c": 1}', (), "a"),
    ("json", '{"a": |\n"c": 1}', (), "a"),
    ("json", '{"a":\n"c": |', (), "c"),
    ("json", '{"a": "x\n "b": |', (), "b"),
    ("json", '{"a": {"b": 1, "c": |\n}, "d": {"e": 1}}', ("a",), "c"),
    ("json", '{ // "a|\n}', None, None),
    ("json", "{ /* |", None, None),
    ("json", "{ # x\n|", (), None),
    ("json", "a: 1\nb|", (), None),
    ("json", "a: {\n b: |\n}", ("a",), "b"),
    ("json", '{"a": 1}]}|', None, None),
    ("json", '\ufeff{"a": |', (), "a"),
    ("python", "x = {'a': |", (), "a"),
    ("python", "f(x={'a': {'b': [1, 2], '|", ("a",), None),
    ("python", "f({'a': g(1, h={'b': 2}), |", (), None),
    ("python", "x = {'a': 1 if y else 2, 'b': |", (), "b"),
    ("python", "x = {'a': lambda q: q, |", (), None),
    ("python", "x = {**base, 'a': y[1:2], |", (), None),
    ("python", "x = {'a': 1\n  'b|", (), None),
    ("python", 'x = """{ |', None, None),
    ("python", "# {'a': |", None, None),
    ("python", "x = [|", None, None),
]


@pytest.mark.parametrize(("language", "text", "path", "key"), WANTED, ids=[case[1] for case in WANTED])
def test_the_cursor(language: Language, text: str, path: tuple[object, ...] | None, key: str | None) -> None:
    at = text.index("|")
    cursor = outline(text[:at] + text[at + 1 :], language, at).cursor
    assert (cursor and (cursor.path, cursor.key)) == (None if path is None else (path, key))


YAML: list[tuple[str, tuple[object, ...] | None, str | None]] = [
    ("|", (), None),
    ("a: 1\n|", (), None),
    ("a:\n  |", ("a",), None),
    ("a:\n  b: 1\n  c|", ("a",), None),
    ("a:\n  b: 1\nc|", (), None),
    ("a:\n  b:\n    c: |", ("a", "b"), "c"),
    ("a:\n  b:\n    c: 1\n  d: x|", ("a",), "d"),
    ("a:\n  |\n  b: 1\n", ("a",), None),
    ("a:\n  c|: 2\n  b: 1\n", ("a",), None),
    ("a: # |", None, None),
    ("a: b c|", None, None),
    ("'a': |", (), "a"),
]


@pytest.mark.parametrize(("text", "path", "key"), YAML, ids=[case[0] for case in YAML])
def test_the_cursor_in_yaml(text: str, path: tuple[object, ...] | None, key: str | None) -> None:
    at = text.index("|")
    _, cursor = yaml_outline(text[:at] + text[at + 1 :], at)
    assert (cursor and (cursor.path, cursor.key)) == (None if path is None else (path, key))


@CALM
@given(text=st.text(st.sampled_from("{}[]():,\"'#/*\\ \n\r\tab1-.\0\ud800\U0001f600"), max_size=60), data=st.data())
def test_any_text_is_taken(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    for language in ("json", "python"):
        cursor = outline(text, language, at).cursor  # type: ignore[arg-type]
        assert cursor is None or 0 <= cursor.start <= at <= cursor.end <= len(text)
    _, cursor = yaml_outline(text, at)
    assert cursor is None or 0 <= cursor.start <= at <= cursor.end <= len(text)


def test_deep_and_long_texts_are_taken_soon() -> None:
    rng = random.Random(0)
    texts = ["{" * 100_000, '{"a":' * 50_000, "[" * 100_000 + "}" * 100_000, "a:\n" * 20_000, "- " * 20_000]
    texts += ["\n".join(" " * indent + "a:" for indent in range(2000)), "\\" * 100_000, '"' * 99_999]
    texts += ["".join(rng.choice("{}[]:,\"'a\n") for _ in range(100_000))]
    begin = time.process_time()
    for text in texts:
        outline(text, "json", len(text))
        outline(text, "python", len(text) // 2)
        yaml_outline(text, len(text))
    assert time.process_time() - begin < 10  # less than one second for 27 scans
