"""Fixes of code: done once, they leave the rest alone and bring no mistake that was not there."""

import ast
from collections import Counter

import pytest
from test_python_rule_pages import RULES, blocks
from test_python_snippets import SNIPPETS

from dsgen.lint.finding import Finding
from dsgen.lint.fixing import cured
from dsgen.lint.kinds import kind_of
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target

TARGET = make_target()
TEXTS = [*SNIPPETS.values(), *(block.text for rule in RULES for block in blocks(rule))]


def found(data: bytes) -> list[Finding]:
    kind = kind_of("train.py")
    assert kind is not None
    return lint_bytes("train.py", data, kind, TARGET)


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_fix_is_done_once_and_brings_nothing_new(line_end: str) -> None:
    fixed = 0
    for text in TEXTS:
        data = text.replace("\n", line_end).encode()
        before = found(data)
        better = cured(data, "utf-8", found, lambda finding: finding.fix is not None)
        if better == data:
            continue
        fixed += 1
        assert not Counter(one.code for one in found(better)) - Counter(one.code for one in before)
        assert cured(better, "utf-8", found, lambda finding: finding.fix is not None) == better
        assert parses(better)
        assert better.count(line_end.encode()) == data.count(line_end.encode())
    assert fixed >= 2
