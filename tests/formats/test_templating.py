"""No value gets out of its quotes, and a template cannot print one without them."""

import ast
import json
import subprocess
from pathlib import Path

import pytest
from hostile import HOSTILE

from dsgen.errors import InputError
from dsgen.formats.templating import environment, render, to_identifier, to_json, to_python, to_text

STRINGS = pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())


def rendered(template: str, tmp_path: Path, **values: object) -> str:
    (tmp_path / "t.j2").write_text(template, encoding="utf-8")
    return render("t.j2", values, tmp_path)


@STRINGS
def test_json_gives_the_same_string_back(value: str) -> None:
    text = to_json({"key": [value], value: 1})
    assert text.isascii()
    assert json.loads(text) == {"key": [value], value: 1}


@STRINGS
def test_python_gives_the_same_string_back(value: str) -> None:
    text = to_python({"key": [value, (value,)], "more": None})
    assert text.isascii()
    assert "\n" not in text
    assert ast.literal_eval(text) == {"key": [value, (value,)], "more": None}


@STRINGS
def test_shell_passes_on_one_word(value: str, tmp_path: Path) -> None:
    if "\0" in value or "\ud800" in value:
        # Neither can stand in a word at all.
        with pytest.raises(InputError):
            rendered("{{ value | sh }}", tmp_path, value=value)
        return
    script = rendered('printf "%s" {{ value | sh }}', tmp_path, value=value)
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=10, check=True)
    assert ran.stdout == value.encode()
    assert not (tmp_path / "owned").exists()


@STRINGS
def test_text_stays_in_its_docstring_and_its_comment(value: str) -> None:
    text = to_text(value)
    tree = ast.parse(f'"""About {text}."""\n# {text}\n')
    assert len(tree.body) == 1
    assert "{" not in text


@STRINGS
def test_identifiers_are_checked(value: str) -> None:
    with pytest.raises(InputError, match="is not a Python name"):
        to_identifier(value)


@pytest.mark.parametrize("name", ["class", "a.import.b", "1a", "a-b", "a..b", "é", "a b", "a;b"])
def test_what_looks_like_a_name_and_is_none(name: str) -> None:
    with pytest.raises(InputError):
        to_identifier(name)


def test_dotted_names_pass() -> None:
    assert to_identifier("torch.bfloat16") == "torch.bfloat16"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_numbers_that_no_language_can_read_are_refused(value: object, tmp_path: Path) -> None:
    for name in ("tojson", "py"):
        with pytest.raises(InputError, match=r"t\.j2"):
            rendered("{{ value | " + name + " }}", tmp_path, value=value)


def test_python_knows_only_literals() -> None:
    with pytest.raises(TypeError):
        to_python(object())


# Ways to print a value without a quoting filter; each must fail, not print.
BARE = [
    "{{ value }}",
    "{{ value ~ '' }}",
    "{{ (value | tojson) ~ value }}",
    "{{ [value] | join }}",
    "{{ 'x' }}",
    "{{ 3 }}",
    "{{ value | default('x') }}",
    "{% set x = value %}{{ x }}",
    "{% for c in value %}{{ c }}{% endfor %}",
    "{% macro m() %}{{ value | tojson }}{% endmacro %}{{ m() }}",
    "{{ '%s' % value }}",
]


@pytest.mark.parametrize("template", BARE)
def test_nothing_is_printed_unquoted(template: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.j2:1"):
        rendered(template, tmp_path, value='"; import os')


def test_filters_that_could_launder_a_value_are_gone() -> None:
    assert not {"safe", "string", "escape", "forceescape", "tojson_raw", "format", "replace", "e"} & set(
        environment().filters
    )


def test_an_unknown_variable_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.j2:2: .*'absent' is undefined"):
        rendered("x\n{{ absent }}", tmp_path)


def test_a_broken_template_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.j2:3: the template is malformed"):
        rendered("x\ny\n{% if %}", tmp_path)


def test_a_template_sees_no_internals(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        rendered("{{ ''.__class__.__mro__[1].__subclasses__() | length | py }}", tmp_path)


def test_templates_that_are_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder of templates"):
        render("model/decoder.py.j2", {}, tmp_path / "nowhere")


def test_a_template_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.j2").write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        render("t.j2", {}, tmp_path)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("\n{{ (1 / 0) | py }}", "t.j2:2: the template failed: division by zero"),
        ("\n{{ [][3] | py }}", "t.j2:2: the template failed: "),
        ("\n{% for i in range(10**9) %}{% endfor %}", "t.j2:2: the template failed: Range too big"),
        ("{% macro a() %}{{ a() }}{% endmacro %}\n{{ a() }}", "the template failed: maximum recursion depth"),
        ("\n{% include 't.j2' %}", "the template failed: maximum recursion depth"),
        ("\n{{ nothing | tojson }}", "t.j2:2: the template failed: 'nothing' is undefined"),
        ("\n{{ [nothing] | py }}", "t.j2:2: the template failed: 'nothing' is undefined"),
    ],
)
def test_whatever_a_template_ends_in_is_its_own_fault(template: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        rendered(template, tmp_path)
    assert said in str(raised.value)
