"""What is shown of the key under the cursor."""

import pytest

from dsgen.lint.target import LintTarget, make_target
from dsgen.lsp.analysis import analyse
from dsgen.lsp.hover import Shown, hover
from dsgen.lsp.text import Text


def shown(text: str, target: LintTarget | None = None, name: str = "ds_config.json") -> Shown | None:
    at = text.index("|")
    return hover(Text(name, text[:at] + text[at + 1 :]), at, target or make_target("0.16.4"))


ZERO_1 = '"zero_optimization": {"stage": 1'
CODE = "import deepspeed\ndeepspeed.initialize(model=m, config={{'train_batch_size': n, {}}})\n"

# The text, the file's name, the version, what is said and what is not.
SAID = [
    ('{"gradient_|clipping": 1}', "x.json", "0.16.4", ["Default: `0.0` in", "from 0.19.3", "In effect"], ["Since"]),
    ('{"gradient_|clipping": 1}', "x.json", "0.19.8", ["Default: `1.0` in DeepSpeed 0.19.8"], []),
    ('{"zero_optimization": {"overlap_comm": nu|ll, "stage": 3}}', "x.json", "0.16.4", ["`true` at stage 3"], []),
    (f'{{{ZERO_1}, "sub_|group_size": 9}}}}', "x.json", "0.16.4", ["stage 3", "**Ignored** by DeepSpeed 0.16.4"], []),
    ('{"amp|": {"enabled": false}}', "x.json", "0.19.8", ["Gone from DeepSpeed 0.19.8", "**Refused**"], []),
    ('{"fp16": {"enabled": "fa|lse"}}', "x.json", "0.16.4", ["`true`: any text"], []),
    ('{"ow|n": 1}', "x.json", "0.16.4", ["**Ignored**", "no key that is read here"], []),
    ('{"gradient_|clipping": 1, "x', "x.json", "0.16.4", ["Default: `0.0`"], ["effect"]),
    ("gradient_|clipping: 1\ntrain_batch_size: 8", "x.yaml", "0.16.4", ["Default: `0.0`", "In effect"], []),
    (CODE.format("'gradient_|clipping': 1"), "t.py", "0.16.4", ["Default: `0.0`", "In effect", "`1`"], []),
    (CODE.format("'gradient_|clipping': c"), "t.py", "0.16.4", ["Default: `0.0`", "Code computes"], ["effect"]),
    (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_|stage: 3\n",
        *("a.yaml", "0.16.4", ["zero\\_optimization.stage", "`3`"], []),
    ),
]


@pytest.mark.parametrize(("text", "name", "version", "said", "unsaid"), SAID, ids=[case[0] for case in SAID])
def test_facts(text: str, name: str, version: str, said: list[str], unsaid: list[str]) -> None:
    found = shown(text, make_target(version), name)
    assert found is not None
    for words in said:
        assert words in found.markdown
    for words in unsaid:
        assert words not in found.markdown


def test_what_is_shown_is_about_the_key_or_the_value() -> None:
    text = '{"fp16": {"enabled": true}}'
    for marked, about in (("enab|led", '"enabled"'), ("tr|ue", "true"), ("fp1|6", '"fp16"')):
        found = shown(text.replace(marked.replace("|", ""), marked))
        assert found is not None
        assert text[found.start : found.end] == about
    assert shown("|" + text) is None
    assert shown('{"fp16":| {}}') is None


def test_a_finding_shows_the_words_of_its_rule() -> None:
    text = Text("ds_config.json", '{"own_`](x)": 1, "train_batch_size": 8}')
    found = hover(text, 3, make_target(), analyse(text).findings)
    assert found is not None
    assert "**DS110 unknown-key**" in found.markdown
    assert "`dsgen rule DS110` has examples." in found.markdown
    assert "own_`](x)" not in found.markdown  # it is no link of ours


def test_a_long_value_is_cut() -> None:
    found = shown(f'{{"wandb": {{"project": "|{"x" * 5000}"}}}}')
    assert found is not None
    assert len(found.markdown) < 2000
