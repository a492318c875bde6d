"""Every rule's docstring is its page and its test: bad is found by it alone, good and fixed are clean."""

import re
import shlex
from dataclasses import dataclass
from textwrap import dedent

import pytest
from python_lint import lint

from dsgen.lint.finding import Finding
from dsgen.lint.fixing import fixed
from dsgen.lint.rule import Rule, rules_for

_BLOCK = re.compile(r"^ *```python (?P<head>[^\n]+)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
RULES = rules_for("python")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    also: frozenset[str]
    """Codes of other mistakes that the example cannot do without."""


def blocks(rule: Rule) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(rule.page):
        kind, *words = shlex.split(match["head"])
        also = frozenset(word.removeprefix("also=") for word in words)
        found.append(Block(kind, dedent(match["text"]), also))
    return found


def shown(findings: list[Finding]) -> list[str]:
    return [f"{finding.range.line}: {finding.code} {finding.message}" for finding in findings]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule) -> None:
    examples = blocks(rule)
    assert {"bad", "good"} <= {block.kind for block in examples} <= {"bad", "fixed", "good"}
    for block in examples:
        findings = lint(block.text)
        expected = {rule.code, *block.also} if block.kind == "bad" else set(block.also)
        assert {finding.code for finding in findings} == expected, shown(findings)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_fix_gives_what_the_page_says(rule: Rule) -> None:
    before = ""
    for block in blocks(rule):
        if block.kind == "fixed":
            fixes = [finding.fix for finding in lint(before) if finding.fix]
            assert fixed(before, fixes) == block.text
        before = block.text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_form(rule: Rule) -> None:
    assert re.fullmatch(r"(?:TC|XF)[1-8]\d\d", rule.code)
    assert rule.name == rule.check.__module__.rpartition(".")[2].replace("_", "-"), "the file is named for the mistake"
    assert rule.source
    assert rule.page.splitlines()[0].endswith((".", ":"))
    assert rule.page.count("```") % 2 == 0


def test_codes_and_names_are_unique() -> None:
    assert len(RULES) >= 40
    assert len({rule.name for rule in RULES}) == len({rule.code for rule in RULES}) == len(RULES)
