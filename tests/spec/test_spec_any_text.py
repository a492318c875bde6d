"""No text whatever makes the reader do anything but read it or refuse it, soon."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dsgen.errors import InputError, Problem
from dsgen.spec.read import read_spec, spec_from_text
from dsgen.spec.schema import homes, spec_schema
from dsgen.spec.values import Spec

YAML = [": ", "- ", "? ", ", ", *"[]{}'\"\\@`\n\t", "\n  ", "\n    ", " #", "|\n", ">\n", "|-9\n", "---\n", "...\n"]
TRAPS = ["&a ", "*a", "!!int ", "!t ", "!<%80> ", "<<", "%YAML 1.1\n", "%YAML 99999999999.1\n", "%TAG ! x\n"]
ESCAPES = [f'"\\{escape}"' for escape in ("ud800", "UFFFFFFFF", "x0", "0", "n", "_")]
CHARACTERS = ["\x00", "\x85", "\u2028", "\ufeff", "\ud800", "\x7f", "é", "😀"]
WORDS = ["null", "~", "yes", "no", "max", "full", "lora", "sgd", "cosine", "h100"]
NUMBERS = [".inf", ".nan", "1e400", "0x1F", "1:30", "2026-11-29", "80GiB", "7B", "-1", "0", "8", "2.10", "9" * 5000]
KEYS = sorted(homes())
TOKENS = [*YAML, *TRAPS, *ESCAPES, *CHARACTERS, *WORDS, *NUMBERS, *KEYS, *(f"{key}: " for key in KEYS)]
FULL = (Path(__file__).parent / "hostile" / "not_supported_yet.yaml").read_text(encoding="utf-8")


def problems_of(read: Callable[[], Spec]) -> tuple[Problem, ...]:
    """Nothing but a spec or an InputError may come back."""
    try:
        read()
    except InputError as error:
        return error.problems
    return ()


def read_or_refuse(text: str) -> None:
    started = time.process_time()
    problems = problems_of(lambda: spec_from_text(text))
    # Of this process, so that a busy machine changes nothing. Generous: it is below a tenth of a second.
    assert time.process_time() - started < 5
    for problem in problems:
        assert problem.message.isprintable()
        assert len(str(problem)) < 1000


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
@example("&a [*a]")
@example("model: {<<: {a: b}}")
@example("%YAML 1.1\n%YAML 1.1\n---\n")
@example("? ")
@example("? : ")
@example("{? a}")
@example("training: [global_batch, global_tokens]")
@example("hardware: {gpu: {gpu: {gpu: {}}}}")
def test_any_tokens(text: str) -> None:
    read_or_refuse(text)
    read_or_refuse("model: gpt2\nhardware: {gpu: h100}\n" + text)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(FULL)), st.integers(0, 30), st.sampled_from(TOKENS))
def test_a_spec_with_one_piece_replaced(at: int, length: int, token: str) -> None:
    read_or_refuse(FULL[:at] + token + FULL[at + length :])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(TOKENS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(spec_schema()["properties"])), VALUES))
def test_known_keys_with_any_values(mapping: dict[str, object]) -> None:
    read_or_refuse(json.dumps(mapping, ensure_ascii=False))


@st.composite
def near_the_schema(draw: st.DrawFn) -> object:
    """A mapping whose keys stand where they belong, with whatever values."""
    spec: dict[str, object] = {}
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=6)):
        parent = spec
        for step in filter(None, draw(st.sampled_from(homes()[key])).split(".")):
            below = parent.setdefault(step, {})
            if not isinstance(below, dict):
                break
            parent = below
        parent[key] = draw(VALUES)
    return spec


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(near_the_schema())
def test_keys_where_they_belong_with_any_values(mapping: object) -> None:
    read_or_refuse(json.dumps(mapping, ensure_ascii=False))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(data)
    problems = problems_of(lambda: read_spec(str(path)))
    assert all(str(problem).startswith(str(path)) for problem in problems)
