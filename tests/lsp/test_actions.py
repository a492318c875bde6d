"""What can be done about findings, and that it does what it says."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsgen.documents.edits import apply
from dsgen.lint.target import make_target
from dsgen.lsp.actions import FIX_ALL, Action, actions, differences
from dsgen.lsp.analysis import Analysis, analyse
from dsgen.lsp.text import Text

CALM = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

DEEPSPEED = make_target("0.19.8", "deepspeed")
CODE = """\
import deepspeed

engine, *_ = deepspeed.initialize(model=model, config={"train_batch_size": 8, "own": 1})
"""


def analysed(text: str, name: str = "ds_config.json") -> Analysis:
    found = analyse(Text(name, text))
    assert found.findings
    return found


def offered(analysis: Analysis, at: str, *only: str) -> list[Action]:
    start = analysis.text.text.index(at)
    return list(actions(analysis, start, start + len(at), DEEPSPEED, only))


def test_each_fix_cures_its_finding() -> None:
    analysis = analysed('{"train_batch_size": 8, "gradient_cliping": 1, "aio": {"thread_count": 4}}')
    (unsafe, *_) = offered(analysis, '"gradient_cliping"')
    assert (unsafe.title, unsafe.is_safe) == ("Rename it to 'gradient_clipping' (can change the training)", False)
    (safe, *rest) = offered(analysis, '"thread_count"', "quickfix")
    assert (safe.title, safe.is_safe) == ("Rename it to 'intra_op_parallelism'", True)
    assert FIX_ALL not in {action.kind for action in rest}
    text = apply(analysis.text.text, [*unsafe.edits, *safe.edits])
    assert text == '{"train_batch_size": 8, "gradient_clipping": 1, "aio": {"intra_op_parallelism": 4}}'
    assert analyse(Text("ds_config.json", text)).findings == ()


def test_kinds_are_chosen_as_the_client_asks() -> None:
    analysis = analysed('{"train_batch_size": 8, "own": 1, "aio": {"thread_count": 4}}')
    assert {action.kind for action in offered(analysis, "own")} == {"source.fixAll.dsgen", "quickfix"}
    for asked, kinds in (
        ("source", {FIX_ALL}),
        ("source.fixAll", {FIX_ALL}),
        ("source.fixAll.dsgen", {FIX_ALL}),
        ("source.fixAll.other", set()),
        ("source.fix", set()),
        ("", {FIX_ALL, "quickfix"}),
    ):
        assert {action.kind for action in offered(analysis, '"own"', asked)} == kinds


@pytest.mark.parametrize(
    ("text", "name", "at", "after"),
    [
        (
            '{"own": 1,\n "train_batch_size": 8}',
            *("ds_config.json", '"own"'),
            '{"own": 1, // dsgen: ignore[DS110]\n "train_batch_size": 8}',
        ),
        (
            '{"own": 1, "zero_optimization": {"stage": 9}, // dsgen: ignore[DS110]\r\n "train_batch_size": 8}',
            *("ds_config.json", "9"),
            '{"own": 1, "zero_optimization": {"stage": 9}, // dsgen: ignore[DS110, DS112]\r\n "train_batch_size": 8}',
        ),
        (
            "train_batch_size: 8\nown: 1\n",
            *("ds.yaml", "own"),
            "train_batch_size: 8\nown: 1  # dsgen: ignore[DS110]\n",
        ),
        (CODE, "train.py", '"own"', CODE.rstrip() + "  # dsgen: ignore[DS110]\n"),
    ],
)
def test_a_comment_hides_one_finding(text: str, name: str, at: str, after: str) -> None:
    analysis = analysed(text, name)
    (ignore,) = [action for action in offered(analysis, at, "quickfix") if action.title.startswith("Ignore")]
    assert apply(text, ignore.edits) == after


def test_no_comment_where_it_would_do_harm() -> None:
    # Text without quotes runs to the end of its line, and so would the comment.
    assert offered(analysed("train_batch_size: 8\nown: text"), "own", "quickfix") == []
    analysis = analysed('{"own": 1, "train_batch_size": 8}')
    assert not list(actions(analysis, 0, 9, make_target("0.19.8"), ("quickfix",)))  # perhaps plain JSON is wanted


LINES = st.text(st.sampled_from("ab\n\r\U0001f600"), max_size=30)


@CALM
@given(before=LINES, after=LINES)
def test_edits_make_one_text_of_another(before: str, after: str) -> None:
    assert apply(before, list(differences(before, after))) == after


def test_edits_of_a_long_text_are_one() -> None:
    lines = [f"{number}\n" for number in range(6000)]
    before, after = "".join(lines), "".join([*lines[:10], "x\n", *lines[11:5000], *lines[5001:]])
    edits = list(differences(before, after))
    assert len(edits) == 1
    assert apply(before, edits) == after
