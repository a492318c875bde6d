"""``dsgen: ignore[CODE]``: in comments only, for its line only, and not longer than it is needed."""

from collections.abc import Callable

import pytest
from deepspeed_configs import lint as lint_config

from dsgen.lint.finding import Finding
from dsgen.lint.fixing import cured
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
    # Advice is not what these comments are about.
    return [(finding.code, finding.range.line) for finding in findings if finding.severity != "info"]


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


KEPT = '"own": 1, "train_batch_size": 8'
# Before, and after the safe fixes: a comment goes with its line, with the blanks before it, or only the codes go.
REMOVED = [
    ('{"train_batch_size": 8} // dsgen: ignore[DS110]', '{"train_batch_size": 8}'),
    ('{"train_batch_size": 8} /* dsgen: ignore[DS110] */', '{"train_batch_size": 8}'),
    ('{\n  # dsgen: ignore[DS110]\n  "train_batch_size": 8\n}', '{\n  "train_batch_size": 8\n}'),
    ('{"train_batch_size": 8}\n// dsgen: ignore[DS110]', '{"train_batch_size": 8}\n'),
    ('{/* dsgen: ignore[DS110] */ "train_batch_size": 8}', '{"train_batch_size": 8}'),
    ('{"train_batch_size": 8} // why, dsgen: ignore[DS110]', '{"train_batch_size": 8} // why'),
    ('{"train_batch_size": 8} // dsgen: ignore[DS110] why', '{"train_batch_size": 8} // why'),
    ('{"train_batch_size": 8} // so: dsgen: ignore[DS110], and so', '{"train_batch_size": 8} // so, and so'),
    ('{"train_batch_size": 8} # dsgen: ignore[DS110] dsgen: ignore[DS111]', '{"train_batch_size": 8}'),
    (f"{{{KEPT}}} # x dsgen: ignore[DS310, DS110] y", f"{{{KEPT}}} # x dsgen: ignore[DS110] y"),
    (f"{{{KEPT}}} # dsgen: ignore[DS110]", f"{{{KEPT}}} # dsgen: ignore[DS110]"),
    ('{"train_batch_size": 8} // dsgen: ignore', '{"train_batch_size": 8} // dsgen: ignore'),
]


def cured_text(text: str, lint: Callable[[str], list[Finding]]) -> str:
    def lint_again(data: bytes) -> list[Finding]:
        return lint(data.decode())

    return cured(text.encode(), "utf-8", lint_again, lambda finding: bool(finding.fix and finding.fix.safe)).decode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("before", "after"), REMOVED, ids=[case[0] for case in REMOVED])
def test_what_hides_nothing_is_taken_out(before: str, after: str, line_end: str) -> None:
    before, after = before.replace("\n", line_end), after.replace("\n", line_end)
    assert cured_text(before, lint_config) == after


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_what_hides_nothing_is_taken_out_of_any_file(line_end: str) -> None:
    code = "import torch\n\nif True:\n    # dsgen: ignore[TC201]\n    x = 1  # é, dsgen: ignore[TC201]\n"
    after = "import torch\n\nif True:\n    x = 1  # é\n"
    assert cured_text(code.replace("\n", line_end), lint_python) == after.replace("\n", line_end)
    kind = kind_of("ds.yaml")
    assert kind is not None
    yaml = "train_batch_size: 8  # dsgen: ignore[DS110]\nzero_optimization:\n  # dsgen: ignore[DS301]\n  stage: 2\n"
    after = "train_batch_size: 8\nzero_optimization:\n  stage: 2\n"
    found = cured_text(
        yaml.replace("\n", line_end), lambda text: lint_bytes("ds.yaml", text.encode(), kind, make_target())
    )
    assert found == after.replace("\n", line_end)


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
