"""Real configs: nothing crashes, and those that are known to work get no error."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from deepspeed_configs import DEEPSPEED, SHARED, corpus, lint

from dsgen.lint.finding import Finding
from dsgen.lint.kinds import kind_of_named
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import INSTALLED, LintTarget, make_target

pytestmark = pytest.mark.skipif(not corpus(), reason="DSGEN_SHARED is unset: no corpus of real configs at hand")

# What is said of files that are known to work: one row for each kind, with how often and why it is right all the same.
with open(Path(__file__).with_name("defended_warnings.tsv"), encoding="utf-8", newline="") as table:
    DEFENDED = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def working() -> list[dict[str, str]]:
    """Official examples and files of frameworks' own tests, of every kind that is linted."""
    with open(Path(str(SHARED), "corpus", "INDEX.tsv"), encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["known_to_work"].startswith("yes") and kind_of_named(row["file"])]


def said_of(row: dict[str, str], target: LintTarget) -> list[Finding]:
    kind = kind_of_named(row["file"])
    assert kind is not None
    return lint_bytes(row["file"], Path(str(SHARED), "corpus", row["file"]).read_bytes(), kind, target)


@pytest.mark.parametrize("loaded_by", [None, "transformers"])
def test_what_is_known_to_work_gets_no_false_error(loaded_by: str | None) -> None:
    target = make_target("0.19.6", loaded_by)  # type: ignore[arg-type]
    files = working()
    assert len(files) >= 150
    for row in files:
        if "rejects" not in row["loader_check"]:  # by DeepSpeed 0.19.6 or accelerate itself
            assert [finding for finding in said_of(row, target) if finding.severity == "error"] == [], row["file"]


def test_each_warning_on_what_works_is_defended_by_kind() -> None:
    found = Counter(
        (finding.code, str((finding.path or ("",))[-1]))
        for row in working()
        for finding in said_of(row, make_target("0.19.6"))
        if finding.severity == "warning"
    )
    assert found == {(row["code"], row["key"]): int(row["count"]) for row in DEFENDED}
    assert all(len(row["reason"]) > 20 for row in DEFENDED)


@pytest.mark.parametrize(("version", "origin"), [(None, None), ("0.19.6", None), ("0.19.8", INSTALLED)])
@pytest.mark.parametrize("loaded_by", [None, "transformers"])
def test_working_files_get_no_error(version: str | None, origin: str | None, loaded_by: str | None) -> None:
    target = make_target(version, loaded_by, origin=origin)  # type: ignore[arg-type]
    checked = 0
    for real in corpus():
        if real.works and real.accepted:
            checked += 1
            findings = lint_bytes(real.file, real.path.read_bytes(), DEEPSPEED, target)
            assert [finding for finding in findings if finding.severity == "error"] == []
    assert checked >= 60


def test_what_deepspeed_refuses_is_an_error() -> None:
    # GPUDirect Storage was refused for want of a GPU where the check ran, which a file does not tell.
    refused = [real for real in corpus() if real.refusal and "GDS" not in real.refusal]
    quiet = [
        real.file
        for real in refused
        if not any(
            finding.severity == "error"
            for finding in lint(real.path.read_text("utf-8"), make_target("0.19.6", "deepspeed", 1), real.file)
        )
    ]
    assert len(refused) > 10
    assert quiet == []


@pytest.mark.parametrize("version", ["0.14.0", "0.16.4", "0.19.8"])
@pytest.mark.parametrize("loaded_by", ["deepspeed", "transformers", "accelerate", "lightning"])
def test_no_file_crashes_any_target(version: str, loaded_by: str) -> None:
    target = make_target(version, loaded_by, world_size=8, gpus_per_node=4)  # type: ignore[arg-type]
    for real in corpus():
        for finding in lint(real.path.read_text("utf-8"), target, real.file):
            assert finding.range.line >= 1
            assert finding.range.column >= 1
            assert finding.range[:2] <= finding.range[2:]
