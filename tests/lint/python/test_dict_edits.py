"""Edits to dict literals in code: the dict that Python then reads is the one that was meant, all else stays."""

import ast
from typing import Any

import pytest

from dsgen.documents.edits import apply
from dsgen.lint.kinds import kind_of
from dsgen.lint.mark import Step
from dsgen.lint.python.dicts import configs_in_code
from dsgen.lint.python.layout import edits_of, python_text
from dsgen.lint.python.read import PythonFile
from dsgen.lint.target import make_target

CODE = """\
import deepspeed

config = {
    "train_batch_size": n * 8,  # computed
    "zero_optimization": {
        "stage": (2),  # two
        'offload_optimizer': {"device": "cpu"},
    },
    "fp16": dict(enabled=True),
    "steps_per_print": (
        10  # ten
    ),
}
engine = deepspeed.initialize(model=m, config=config)
"""


def changed(code: str, *steps: Step) -> str:
    kind = kind_of("train.py")
    assert kind is not None
    file = kind.read(code.encode(), make_target(), "train.py")
    assert isinstance(file, PythonFile)
    (held,) = configs_in_code(file, make_target())
    laid_out = getattr(held.config, "layout", None)
    assert laid_out is not None
    return apply(code, [one for step in steps for one in edits_of(laid_out(), step)])


CASES = [
    (Step("insert", ("gradient_clipping",), 0.0), "    ),\n}", '    ),\n    "gradient_clipping": 0.0,\n}'),
    (Step("remove", ("train_batch_size",)), '    "train_batch_size": n * 8,  # computed\n', ""),
    (Step("remove", ("steps_per_print",)), '    "steps_per_print": (\n        10  # ten\n    ),\n', ""),
    (Step("remove", ("fp16",)), '    "fp16": dict(enabled=True),\n', ""),
    (Step("replace", ("zero_optimization", "stage"), 3), '"stage": (2),', '"stage": 3,'),
    (
        Step("insert", ("zero_optimization", "offload_optimizer", "pin_memory"), False),
        *('{"device": "cpu"}', '{"device": "cpu", "pin_memory": False}'),
    ),
    (
        Step("insert", ("zero_optimization", "offload_param"), {"device": None}),
        *('"cpu"},\n', '"cpu"},\n        "offload_param": {"device": None},\n'),
    ),
    (Step("rename", ("zero_optimization", "offload_optimizer"), "x"), "'offload_optimizer'", '"x"'),
    (Step("remove", ("zero_optimization", "offload_optimizer", "device")), '{"device": "cpu"}', "{}"),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("step", "before", "after"), CASES)
def test_one_place_changes(step: Step, before: str, after: str, line_end: str) -> None:
    assert CODE.count(before) == 1
    found = changed(CODE.replace("\n", line_end), step)
    assert found == CODE.replace(before, after).replace("\n", line_end)
    ast.parse(found)


INLINE = "import deepspeed\ne = deepspeed.initialize(model=m, config={'a': f(1, 2), 'train_batch_size': 8})\n"


def test_on_one_line_and_in_the_quotes_of_the_dict() -> None:
    assert "'train_batch_size': 8, 'x': 'y'})" in changed(INLINE, Step("insert", ("x",), "y"))
    assert "{'a': f(1, 2)})" in changed(INLINE, Step("remove", ("train_batch_size",)))
    assert "{'train_batch_size': 8})" in changed(INLINE, Step("remove", ("a",)))
    spread = INLINE.replace("'a': f(1, 2)", "'a': {**b, 'c': 1}")
    assert "{**b, 'c': 1, 'd': 2}" in changed(spread, Step("insert", ("a", "d"), 2))


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    "value", [None, True, 0, -1.5, 1e-8, "a", "it's", 'a"b', "\\", "\n", "é\U0001f600", [1, "x"], {"a": {"b": []}}]
)
def test_values_are_read_back(value: Any, quote: str) -> None:
    assert ast.literal_eval(python_text(value, quote)) == value


def test_infinity_is_an_expression() -> None:
    assert python_text(float("inf")) == 'float("inf")'
