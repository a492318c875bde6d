"""Every given case, linted as its folder and its spec.txt say: what must be said is said, and nothing that is false.

Words of a row are separated by |; its flags are what spec.txt tells in words.
"""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from deepspeed_configs import SHARED

from dsgen.cli import main

pytestmark = pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED is unset: no given cases at hand")

with open(Path(__file__).with_name("given_cases.tsv"), encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
LINTED = [row for row in ROWS if not row["left_out"]]
FOLDER = Path(str(SHARED), "cases")


def lint(files: list[Path], flags: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    version = [] if "--deepspeed" in flags else ["--deepspeed", "0.19.8"]
    main(["lint", *map(str, files), *flags, *version, "--info", "--format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".json", ".yaml", ".py"))


def said(findings: list[dict[str, Any]]) -> str:
    return "\n".join(f"{finding['code']} {finding['message']}; {finding['help']}" for finding in findings)


@pytest.mark.parametrize("row", LINTED, ids=lambda row: row["case"])
def test_what_must_be_said_is_said(row: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [path for path in files_of(FOLDER / row["case"]) if path.name != "fsdp_config.json"]
    findings = lint(files, shlex.split(row["flags"]), capsys)
    named = [finding for finding in findings if finding["code"] == row["code"]]
    assert row["severity"] in {finding["severity"] for finding in named}, said(findings)
    for word in row["words"].split("|"):
        assert word in said(named)
    true_too = {row["code"], *row["true_too"].split()}
    assert [finding for finding in findings if finding["severity"] != "info" and finding["code"] not in true_too] == []


def test_every_case_has_a_row() -> None:
    with open(FOLDER / "index.tsv", encoding="utf-8", newline="") as index:
        given = [row["id"] for row in csv.DictReader(index, delimiter="\t")]
    assert [row["case"] for row in ROWS] == given
    for row in ROWS:
        assert bool(row["left_out"]) != bool(row["code"]), row["case"]
    # Only what the planner answers, and one kind of file that is not linted yet.
    assert len(ROWS) - len(LINTED) == 5


def twins() -> list[Path]:
    return sorted(FOLDER.glob("*/clean-twin")) if SHARED else []


@pytest.mark.parametrize("twin", twins(), ids=lambda path: path.parent.name)
@pytest.mark.parametrize("loaded_by", [None, "transformers"])
def test_twins_are_quiet(twin: Path, loaded_by: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = (row for row in ROWS if row["case"] == twin.parent.name)
    flags = shlex.split(row["flags"]) + (["--loaded-by", loaded_by] if loaded_by else [])
    findings = [finding for finding in lint(files_of(twin), flags, capsys) if finding["severity"] != "info"]
    # BR-089's twin accumulates under DDP without no_sync, which is another point, and true.
    assert {finding["code"] for finding in findings} <= ({"TC205"} if row["case"] == "BR-089" else set())


def test_older_deepspeed_still_has_what_was_removed_later(capsys: pytest.CaptureFixture[str]) -> None:
    findings = lint([FOLDER / "BR-029/ds_config.json"], ["--deepspeed", "0.16.9"], capsys)
    shown = {(finding["code"], finding["severity"]) for finding in findings if finding["severity"] != "info"}
    assert shown == {("DS113", "warning")}
