"""Edits to YAML: what they are to change is changed, all else stays, byte for byte."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsgen.documents import yaml_edits as edit
from dsgen.documents.document import Document, Path
from dsgen.documents.edits import TextEdit, apply
from dsgen.documents.yaml_text import read_yaml

TEXT = """\
# ours
train_batch_size: 8  # eight
zero_optimization:
  stage: 2   # two

  # in full
  offload_optimizer:
    device: cpu
    pin_memory: true # pinned

fp16: {enabled: true, loss_scale: 0}
"""


def edited(text: str, made: list[TextEdit] | None) -> str | None:
    return None if made is None else apply(text, made)


def document(text: str) -> Document:
    return Document(text, read_yaml(text))


CASES: list[tuple[Callable[[Document], list[TextEdit] | None], str, str]] = [
    (lambda d: edit.remove(d, (), ["train_batch_size"]), "train_batch_size: 8  # eight\n", ""),
    (lambda d: edit.remove(d, ("zero_optimization",), ["stage"]), "  stage: 2   # two\n", ""),
    (
        lambda d: edit.remove(d, ("zero_optimization",), ["offload_optimizer"]),
        *("  offload_optimizer:\n    device: cpu\n    pin_memory: true # pinned\n", ""),
    ),
    (
        lambda d: edit.remove(d, ("zero_optimization", "offload_optimizer"), ["device", "pin_memory"]),
        *(":\n    device: cpu\n    pin_memory: true #", ": {} #"),
    ),
    (lambda d: edit.remove(d, ("fp16",), ["loss_scale"]), "{enabled: true, loss_scale: 0}", "{enabled: true}"),
    (lambda d: edit.remove(d, ("fp16",), ["enabled"]), "{enabled: true, loss_scale: 0}", "{loss_scale: 0}"),
    (
        lambda d: edit.insert(d, (), "gradient_clipping", 0.0),
        *("loss_scale: 0}\n", "loss_scale: 0}\ngradient_clipping: 0.0\n"),
    ),
    (
        lambda d: edit.insert(d, ("zero_optimization", "offload_optimizer"), "ratio", 1e-5),
        *("true # pinned\n", "true # pinned\n    ratio: 1.0e-05\n"),
    ),
    (
        lambda d: edit.insert(d, ("zero_optimization",), "offload_param", {"device": "none", "x": {"z": "no"}}),
        "true # pinned\n",
        'true # pinned\n  offload_param:\n    device: none\n    x:\n      z: "no"\n',
    ),
    (lambda d: edit.insert(d, ("fp16",), "hysteresis", 2), "loss_scale: 0}", "loss_scale: 0, hysteresis: 2}"),
    (lambda d: edit.rename(d, ("zero_optimization", "stage"), "level"), "stage: 2", "level: 2"),
    (lambda d: edit.replace(d, ("zero_optimization", "stage"), "auto"), "stage: 2", "stage: auto"),
    (
        lambda d: edit.replace(d, ("zero_optimization", "offload_optimizer"), {"device": "none"}),
        *(":\n    device: cpu\n    pin_memory: true #", ": {device: none} #"),
    ),
    (lambda d: edit.replace(d, ("fp16",), {"a": [1, None]}), "{enabled: true, loss_scale: 0}", "{a: [1, null]}"),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("make", "before", "after"), CASES)
def test_one_place_changes(
    make: Callable[[Document], list[TextEdit] | None], before: str, after: str, line_end: str
) -> None:
    text = TEXT.replace("\n", line_end)
    assert TEXT.count(before) == 1
    expected = TEXT.replace(before, after).replace("\n", line_end)
    assert edited(text, make(document(text))) == expected


def test_the_last_line_may_lack_its_end() -> None:
    assert edited("a: 1", edit.insert(document("a: 1"), (), "b", 2)) == "a: 1\nb: 2"
    assert edited("a:\n  b: 1", edit.remove(document("a:\n  b: 1"), ("a",), ["b"])) == "a: {}"
    assert edited("a: 1", edit.remove(document("a: 1"), (), ["a"])) == "{}"


SHARED = [
    "base: &base\n  stage: 2\nzero:\n  <<: *base\n  x: 1\n",
    "a: &a {stage: 2}\nzero: *a\n",
]


@pytest.mark.parametrize("text", SHARED)
def test_what_stands_for_several_is_left_alone(text: str) -> None:
    read = document(text)
    assert edit.replace(read, ("zero", "stage"), 3) is None
    assert edit.rename(read, ("zero", "stage"), "level") is None
    assert edit.remove(read, ("zero",), ["stage"]) is None
    assert edit.insert(read, ("zero",), "y", 3) is None


@pytest.mark.parametrize(
    "text", ["a: |\n  x\n  y\nb: 1\n", "a: >-\n  x\n\nb: 1\n", "a: 'x\n  y'\nb: 1\n", "a:\nb: 1\n"]
)
def test_texts_of_several_lines_go_as_a_whole(text: str) -> None:
    assert edited(text, edit.remove(document(text), (), ["a"])) in ("b: 1\n", "\nb: 1\n")
    assert read_yaml(str(edited(text, edit.insert(document(text), (), "c", 2)))).value["c"] == 2


KEYS = st.sampled_from(["a", "b", "c", "on", "1", "x y"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["x", "no", "1", "1e5", "# a", "a: b", "", "- x", "{", "\u00e9\U0001f600", "null", "~", "*a"])
)
VALUES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3),
    max_leaves=6,
)
CONFIGS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)


def paths(value: Any, path: Path = ()) -> list[Path]:
    inner = value.items() if isinstance(value, dict) else ()
    return [path, *(found for key, one in inner for found in paths(one, (*path, key)))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=CONFIGS, new=VALUES, flow=st.sampled_from([False, None, True]), data=st.data())
def test_what_is_read_then_is_what_was_meant(config: Any, new: Any, flow: bool | None, data: st.DataObject) -> None:
    text = yaml.safe_dump(config, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    read = document(text)
    assert read.root is not None
    path = data.draw(st.sampled_from([path for path in paths(config) if path]))
    *parent, key = path
    holder = _at(config, tuple(parent))
    meant = json.loads(json.dumps(config))
    action = data.draw(st.sampled_from(["remove", "replace", "insert", "rename"]))
    match action:
        case "remove":
            made = edit.remove(read, tuple(parent), [str(key)])
            del _at(meant, tuple(parent))[key]
        case "replace":
            made = edit.replace(read, path, new)
            _at(meant, tuple(parent))[key] = new
        case "insert":
            made = edit.insert(read, tuple(parent), "new", new)
            _at(meant, tuple(parent))["new"] = new
        case _:
            made = edit.rename(read, path, "new")
            _at(meant, tuple(parent))["new"] = _at(meant, tuple(parent)).pop(key)
    assert isinstance(holder, dict)
    if made is not None:
        assert read_yaml(apply(text, made)).value == meant, (action, text, apply(text, made))
    else:
        # What is null has no place, and whatever looks like an alias stops all edits.
        assert (action == "replace" and holder[key] is None) or "*a" in text


def _at(config: Any, path: Path) -> Any:
    for key in path:
        config = config[key]
    return config
