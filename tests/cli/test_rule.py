"""``dsgen rule``, ``dsgen show rules`` and RULES.md: the pages of the rules, from their docstrings."""

import json

import pytest
from console import ROOT

from dsgen.cli import main
from dsgen.lint.rule import every_rule
from dsgen.lint.selection import codes


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main([*words]) == code
    return capsys.readouterr().out


def test_a_page_says_what_and_why_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, "rule", "ds114")
    assert page.startswith("# DS114 renamed-key\n\nA key under a name")
    assert 'Found, with --deepspeed 0.16.4:\n\n```json\n{"train_batch_size": 8, "aio": {"thread_count": 4}}' in page
    assert "\nSource: deepspeed/" in page
    assert "also=" not in page


def test_a_name_shows_the_rule_of_each_kind_of_file(capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, "rule", "file-cannot-be-read", "DS306")
    assert [line.split()[1] for line in page.splitlines() if line.startswith("# ")] == ["DS101", "TC101", "DS306"]


def test_every_page_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rules = json.loads(said(capsys, "rule", *codes(), "--format", "json"))["rules"]
    assert [rule["code"] for rule in rules] == [rule.code for rule in every_rule()]
    for rule in rules:
        assert rule["page"].count("```") % 2 == 0
        assert "```json bad" not in rule["page"]
        assert 10 < len(rule["title"]) < 160, rule["code"]


def test_an_unknown_code_is_met_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "DS3O6"]) == 2
    assert "did you mean DS306?" in capsys.readouterr().err


def test_the_list_finds_by_code_and_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    every = said(capsys, "show", "rules").splitlines()
    assert [line.split()[0] for line in every[1:]] == [rule.code for rule in every_rule()]
    assert [line.split()[0] for line in said(capsys, "show", "rules", "ds30").splitlines()[1:]]
    (row,) = json.loads(said(capsys, "show", "rules", "zero-options", "--format", "json"))["rules"]
    assert (row["code"], row["kinds"]) == ("DS306", ["deepspeed"])


def test_the_checked_in_table_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    table = said(capsys, "show", "rules", "--format", "markdown")
    assert table in (ROOT / "RULES.md").read_text("utf-8"), "dsgen show rules --format markdown makes it"
