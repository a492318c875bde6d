"""``dsgen: ignore[CODE]``: in comments only, for its line only, and not longer than it is needed."""

from collections.abc import Callable

import pytest
from deepspeed_configs import lint as lint_config

from dsgen.lint.finding import Finding
from dsgen.lint.kinds import kind_of
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target

LOOP = """\
for step, batch in enumerate(batches):
    loss = model(batch).loss / n
    loss.backward()
    if step % n == 0:{}
        optimizer.step()
        optimizer.zero_grad()
"""


def lint_python(text: str) -> list[Finding]:
    kind = kind_of("train.py")
    assert kind is not None
    return lint_bytes("train.py", text.encode(), kind, make_target())


def codes(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(finding.code, finding.range.line) for finding in findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"own": 1, // dsgen: ignore[DS110]\n "train_batch_size": 8}', []),
        ('{"own": 1, # ours. dsgen: ignore[DS110, DS114]\n "train_batch_size": 8}', [("DS109", 1)]),
        ('{\n // dsgen:ignore[DS110]\n # why\n\n "own": 1, "train_batch_size": 8}', []),
        ('{\n // dsgen: ignore[DS110]\n "train_batch_size": 8,\n "own": 1}', [("DS109", 2), ("DS110", 4)]),
        ('{"own": 1, // dsgen: ignore\n "train_batch_size": 8}', [("DS110", 1), ("DS109", 1)]),
        ('{"own": "// dsgen: ignore[DS110]", "train_batch_size": 8}', [("DS110", 1)]),
        ('{"own // dsgen: ignore[DS110]": 1, "train_batch_size": 8}', [("DS110", 1)]),
        ("own: text // dsgen: ignore[DS110]\ntrain_batch_size: 8", [("DS110", 1)]),
        ("own: 1 // dsgen: ignore[DS110]\ntrain_batch_size: 8", []),
        ('{"own": 1, /* dsgen: ignore[DS110] */ "train_batch_size": 8}', []),
        ('{\n/* dsgen: ignore[DS110] */ "own": 1,\n "other": 1, "train_batch_size": 8}', [("DS110", 3)]),
        ('{\n/* dsgen: ignore[DS110] */\n "own": 1,\n "train_batch_size": 8}', []),
        ('{"own": 1, "train_batch_size": 8} // dsgen: ignore[DS110]', []),
        ('{"train_batch_size": 8} // dsgen: ignore[DS110]\n# dsgen: ignore[DS111]', [("DS109", 1), ("DS109", 2)]),
    ],
)
def test_configs(text: str, expected: list[tuple[str, int]]) -> None:
    assert codes(lint_config(text)) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_line_end(line_end: str) -> None:
    text = '{\n "own": 1, // dsgen: ignore[DS110]\n "other": 1,\n "train_batch_size": 8\n}'
    assert codes(lint_config(text.replace("\n", line_end))) == [("DS110", 3)]


def test_plain_json_has_no_comments() -> None:
    text = '{"own": 1, // dsgen: ignore[DS110]\n "train_batch_size": 8}'
    assert codes(lint_config(text, make_target(loaded_by="transformers"))) == [("DS101", 1)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda code: LOOP.format(f"  # the tail is wanted. dsgen: ignore[{code}]"), []),
        (lambda code: LOOP.format("").replace("    if", f"    # dsgen: ignore[{code}]\n    if"), []),
        (lambda code: LOOP.format("").replace("loss.back", f'print("# dsgen: ignore[{code}]")\n    loss.back'), [5]),
        (lambda code: f"# dsgen: ignore[{code}]\nimport torch\n" + LOOP.format(""), [1, 6]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_code(make: Callable[[str], str], expected: list[int], line_end: str) -> None:
    (found,) = lint_python(LOOP.format(""))
    text = make(found.code).replace("\n", line_end)
    assert [line for _, line in codes(lint_python(text))] == expected
