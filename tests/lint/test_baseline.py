"""A baseline: what an old repository has already does not stop anybody, what is new does."""

import json
from pathlib import Path

import pytest

from dsgen.cli import main

OLD = '{\n  "train_batch_size": 8,\n  "own": 1,\n  "fp16": {"enabled": true},\n  "bf16": {"enabled": true}\n}\n'


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").mkdir()
    Path("configs/ds.json").write_text(OLD, "utf-8")
    assert main(["lint", ".", "--write-baseline", "known.json"]) == 0


def lint(*args: str) -> int:
    return main(["lint", "configs/ds.json", "--baseline", "known.json", *args])


def test_what_is_known_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "."]) == 1
    assert lint() == 0
    assert "1 file checked: no findings" in capsys.readouterr().out


def test_it_is_known_wherever_it_stands_and_wherever_lint_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("configs/ds.json").write_text("// moved\n\n" + OLD, "utf-8")
    assert lint() == 0
    monkeypatch.chdir("configs")
    assert main(["lint", "ds.json", "--baseline", "../known.json"]) == 0


def test_what_is_new_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path("configs/ds.json").write_text(OLD.replace('"own": 1', '"own": 1, "other": 1'), "utf-8")
    capsys.readouterr()
    assert lint("--format", "json") == 1
    assert [finding["path"] for finding in json.loads(capsys.readouterr().out)["findings"]] == [["other"]]


def test_each_known_finding_hides_one() -> None:
    Path("b.json").write_text(OLD, "utf-8")
    assert main(["lint", "b.json", "--baseline", "known.json"]) == 1, "another file"


def test_what_is_gone_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("configs/ds.json").write_text(OLD.replace('  "own": 1,\n', ""), "utf-8")
    assert lint() == 0
    assert "known.json: 1 known finding is gone" in capsys.readouterr().err


def test_the_project_can_name_it() -> None:
    Path("pyproject.toml").write_text('[tool.dsgen.lint]\nbaseline = "known.json"\n', "utf-8")
    assert main(["lint", "."]) == 0
    assert main(["lint", ".", "--isolated"]) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}', "[" * 9999]
)
def test_other_files_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.json").write_text(text, "utf-8")
    assert lint() == 2
    assert "known.json: is no baseline of dsgen lint" in capsys.readouterr().err


def test_a_device_without_an_end_is_not_read_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "configs/ds.json", "--baseline", "/dev/zero"]) == 2
    assert "/dev/zero: is no baseline of dsgen lint" in capsys.readouterr().err


@pytest.mark.parametrize("linted", ["configs", "configs/ds.json"])
def test_what_was_linted_is_not_replaced(linted: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.json").symlink_to("configs/ds.json")
    for path in ("configs/ds.json", "link.json"):
        assert main(["lint", linted, "--write-baseline", path]) == 2
        assert f"{path}: was linted itself" in capsys.readouterr().err
    assert Path("configs/ds.json").read_text("utf-8") == OLD


def test_a_baseline_that_was_named_with_all_others_is_written_anew() -> None:
    """``dsgen lint *.json --write-baseline known.json``."""
    assert main(["lint", "configs/ds.json", "known.json", "--write-baseline", "known.json"]) == 0
    assert lint() == 0


def test_a_missing_one_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.json").unlink()
    assert lint() == 2
    assert "--write-baseline" in capsys.readouterr().err


LOOP = """\
def {}(model, batches, optimizer, n):
    for step, batch in enumerate(batches):
        (model(batch).loss / n).backward()
        if step % n == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


def test_code_is_known_by_its_line() -> None:
    def write(text: str) -> None:
        Path("train.py").write_text(text, "utf-8")

    write(LOOP.format("train"))
    assert main(["lint", "train.py"]) == 1
    assert main(["lint", "train.py", "--write-baseline", "code.json"]) == 0
    write("import math\n\n" + LOOP.format("train"))
    assert main(["lint", "train.py", "--baseline", "code.json"]) == 0
    write(LOOP.format("train") + LOOP.format("fit"))
    assert main(["lint", "train.py", "--baseline", "code.json"]) == 1, "one more of the same"
