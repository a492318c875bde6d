"""Every form in which findings are said, for the tool that reads it."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from console import ROOT, environment
from jsonschema import Draft202012Validator
from sarif_schema import SARIF

from dsgen.cli import main

# An error with a second place, a warning with a fix on the fourth line, and advice.
CONFIG = """\
{
  "fp16": {"enabled": true},
  "bf16": {"enabled": true},
  "aio": {"thread_count": 4},
  "disable_allgather": true,
  "train_batch_size": 8
}
"""
FORMS = ("text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("a b").mkdir()
    Path("a b/ds_config.json").write_text(CONFIG, "utf-8")
    Path("good.json").write_text('{"train_batch_size": 8}', "utf-8")
    return "a b/ds_config.json"


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 1) -> str:
    assert main(["lint", *args, "--deepspeed", "0.19.8", "--info"]) == code
    return capsys.readouterr().out


def test_concise_says_each_on_a_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, file, "--format", "concise").splitlines()
    assert [line.split(": ", 1)[0] for line in lines[:-1]] == [f"{file}:2:23", f"{file}:4:11", f"{file}:5:3"]
    assert [line.split(": ", 1)[1].split()[:2] for line in lines[:-1]] == [
        ["error", "DS401"],
        ["warning", "DS114"],
        ["info", "DS116"],
    ]
    assert lines[-1] == "1 file checked: 1 error, 1 warning, 1 info"


def test_jsonl_is_the_findings_of_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, file, "good.json", "--format", "jsonl").splitlines()
    whole = json.loads(said(capsys, file, "good.json", "--format", "json"))
    assert [json.loads(line) for line in lines] == whole["findings"]


def test_sarif_is_valid_and_points_at_its_rules(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(said(capsys, file, "--format", "sarif"))
    Draft202012Validator(SARIF, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(report)
    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["DS401", "DS114", "DS116"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    both, renamed, _ = run["results"]
    place = both["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/ds_config.json"
    assert place["region"] == {"startLine": 2, "startColumn": 23, "endLine": 2, "endColumn": 27}
    assert both["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 3
    (change,) = renamed["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 25},
            "insertedContent": {"text": '"intra_op_parallelism"'},
        }
    ]
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["markdown"].startswith(f"# {rule['id']} ")


def test_gitlab_has_what_code_quality_asks_for(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(said(capsys, file, "--format", "gitlab"))
    assert [entry["severity"] for entry in entries] == ["major", "minor", "info"]
    for entry in entries:
        assert entry.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["location"]["path"] == file
    assert [entry["location"]["lines"]["begin"] for entry in entries] == [2, 4, 5]
    prints = [entry["fingerprint"] for entry in entries]
    assert len(set(prints)) == 3
    Path(file).write_text("// a line above\n" + CONFIG, "utf-8")
    moved = json.loads(said(capsys, file, "--format", "gitlab"))
    assert [entry["fingerprint"] for entry in moved] == prints, "a finding that moves is the same finding"


def test_junit_has_a_case_for_each_finding_and_for_each_clean_file(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ElementTree.fromstring(said(capsys, file, "good.json", "--format", "junit"))
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "4", "3")
    suites = {suite.get("name"): suite for suite in root}
    assert [len(suites[name].findall("testcase/failure")) for name in (file, "good.json")] == [3, 0]
    failure = suites[file].find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "error"
    assert f"{file}:2:23: fp16 and bf16 are both on" in str(failure.text)


def test_statistics_count_by_rule(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("again.json").write_text(CONFIG.replace('  "fp16": {"enabled": true},\n', ""), "utf-8")
    lines = said(capsys, file, "again.json", "--statistics").splitlines()
    assert [line.split() for line in lines[:-1]] == [
        ["2", "DS114", "[*]", "renamed-key"],
        ["2", "DS116", "dead-key"],
        ["1", "DS401", "fp16-and-bf16"],
    ]
    rows = json.loads(said(capsys, file, "--statistics", "--format", "json"))["statistics"]
    assert rows[0] == {"code": "DS114", "rule": "renamed-key", "count": 1, "fixable": 1}


@pytest.mark.parametrize("form", FORMS)
def test_a_clean_file_is_said_in_every_form(form: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "good.json", "--format", form, code=0)
    if form in ("json", "sarif", "gitlab"):
        json.loads(out)
    elif form == "junit":
        ElementTree.fromstring(out)
    else:
        assert out in ("", "1 file checked: no findings\n")


@pytest.mark.parametrize("flags", [["--statistics", "--format", "sarif"], ["--diff", "--format", "json"]])
def test_forms_that_do_not_exist_are_refused(flags: list[str], file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", file, *flags]) == 2
    assert capsys.readouterr().err.startswith("dsgen: ")


def on_a_terminal(file: str, **changes: str) -> str:
    """What a terminal receives."""
    ours, theirs = pty.openpty()
    env = {key: value for key, value in environment().items() if key != "NO_COLOR"} | {"TERM": "xterm"} | changes
    command = [sys.executable, "-m", "dsgen", "lint", file]
    with subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL, env=env, cwd=ROOT) as process:
        os.close(theirs)
        received = b""
        with io.FileIO(ours) as terminal:
            try:
                while chunk := terminal.read(4096):
                    received += chunk
            except OSError:
                pass  # the end, as Linux tells it
        process.wait(60)
    return received.decode()


def test_colours_are_for_terminals_that_want_them(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    absolute = str(Path(file).resolve())
    shown = on_a_terminal(absolute)
    assert "\x1b[1;31merror\x1b[0m: fp16 and bf16" in shown
    assert "\x1b" not in on_a_terminal(absolute, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(absolute, TERM="dumb")
    assert "\x1b" not in said(capsys, file)
