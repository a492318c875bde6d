"""``dsgen show``: tables for people, for grep and for programs."""

import json
import re
from typing import Any

import pytest

from dsgen.cli import main
from dsgen.facts.tables import rows

TABLES = ("models", "gpus", "nodes")


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["show", *words]) == code
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(shown(capsys, *words, "--format", "json"))


@pytest.mark.parametrize("table", TABLES)
def test_one_line_per_row_however_long(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    lines = shown(capsys, table).splitlines()
    assert len(lines) == 1 + len(rows(table))
    assert [line.split()[0] for line in lines[1:]] == [row["name"] for row in rows(table)]


@pytest.mark.parametrize("table", TABLES)
def test_json_is_one_object_with_every_row(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = as_json(capsys, table)
    assert answer.keys() == {"version", table}
    assert answer["version"] == 1
    assert [row["name"] for row in answer[table]] == [row["name"] for row in rows(table)]


def test_figures_are_plain_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = as_json(capsys, "models", "llama-2-7b")["models"]
    assert model["parameters"] == 6_738_415_616
    assert model["supported"] is True
    assert model["experts"] is None
    (gpu,) = as_json(capsys, "gpus", "a100-80gb-sxm")["gpus"]
    assert gpu["bf16_tflops"] == 312
    assert 79 * 2**30 < gpu["memory"] < 80 * 2**30
    (node,) = as_json(capsys, "nodes", "p4de.24xlarge")["nodes"]
    assert (node["gpus"], node["gpu"], node["host_memory"]) == (8, "a100-80gb-sxm", 1152 * 2**30)


def test_what_is_not_supported_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    line = shown(capsys, "models", "t5-small").splitlines()[1]
    assert line.endswith("encoder-decoder (not supported yet)")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("models", "META-LLAMA/llama-2-7b"), "llama-2-7b"),
        (("gpus", "v100-sxm2-16gb"), "v100-16gb-sxm"),
        (("nodes", "a100-80gb-sxm"), "p4de.24xlarge"),
    ],
)
def test_a_pattern_is_sought_in_every_name(
    words: tuple[str, ...], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert first in [line.split()[0] for line in shown(capsys, *words).splitlines()[1:]]


def test_a_pattern_without_a_match_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "gpus", "a101"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "no name in the table of gpus contains 'a101'" in output.err
    assert "a100" in output.err


def test_on_a_terminal_no_name_is_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(capsys, "gpus", "h100"))
    assert "h100-80gb-pcie" in text
    assert all(len(line) <= 60 for line in text.splitlines())


def test_columns_of_measured_runs_are_listed_with_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    from dsgen.score.columns import KNOWN

    listed = {row["name"]: row for row in as_json(capsys, "columns")["columns"]}
    assert listed.keys() == KNOWN - {"source_ref", "locator"}
    assert (listed["micro_batch"]["cell"], listed["micro_batch"]["needed"]) == ("whole number", "file")
    assert (listed["attention"]["needed"], listed["notes"]["needed"]) == ("memory", None)
