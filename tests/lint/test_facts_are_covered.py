"""What DeepSpeed checks, drops and does badly, row by row: which rule says it, and that it does.

deepspeed_facts.tsv has one row for each fact (sections 2.1 to 2.3: what DeepSpeed checks itself;
3: what it accepts and should not; 6: the rules by how often they bite). A row names the code, its severity and a config
that shows it; or why there is no rule.
"""

import csv
import shlex
from pathlib import Path

import pytest
from deepspeed_configs import lint, target_by

from dsgen.lint.rule import every_rule

with open(Path(__file__).with_name("deepspeed_facts.tsv"), encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
SHOWN = [row for row in ROWS if row["config"]]


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: f"{row['section']} {row['fact']}")
def test_the_rule_says_it(row: dict[str, str]) -> None:
    findings = lint(row["config"].replace("\\n", "\n"), target_by(shlex.split(row["flags"])))
    assert (row["code"], row["severity"]) in {(finding.code, finding.severity) for finding in findings}


def test_each_row_has_a_rule_or_a_reason() -> None:
    known = {rule.code for rule in every_rule()}
    for row in ROWS:
        assert set(row["code"].split()) <= known, row
        assert row["config"] or row["why_not"], row
        assert row["code"] or row["why_not"], row


def test_no_fact_is_left_out() -> None:
    sections = {row["section"] for row in ROWS}
    assert {f"3.{number}" for number in range(1, 61)} <= sections
    assert {f"6.{number}" for number in range(1, 41)} <= sections
    counts = {name: sum(row["section"] == name for row in ROWS) for name in ("2.1", "2.2", "2.3")}
    assert counts["2.1"] >= 8
    assert counts["2.2"] >= 20
    assert counts["2.3"] >= 50
