"""``[tool.dsgen]``: which findings count and what files are meant for, said once for a project."""

import json
import os
import re
from pathlib import Path

import pytest
from console import ROOT

from dsgen.cli import main

# DS110 (error), DS114 (warning; only where the key was renamed), DS116 (info).
CONFIG = '{"train_batch_size": 8, "zero_optimisation": {}, "aio": {"thread_count": 4}, "disable_allgather": true}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/ds_config.json").write_text(CONFIG, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def say(text: str, folder: str = ".") -> None:
    Path(folder, "pyproject.toml").write_text(text, "utf-8")


def codes(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, str]:
    main(["lint", "configs/ds_config.json", "--info", "--format", "json", *args])
    return {finding["code"]: finding["severity"] for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_a_number_that_python_refuses_to_read_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"[tool.dsgen]\nworld-size = {'9' * 5000}\n")
    assert main(["lint", "configs/ds_config.json"]) == 2
    assert "pyproject.toml: is not TOML that can be read: a number has too many digits" in capsys.readouterr().err


ALL = {"DS110": "error", "DS114": "warning", "DS116": "info"}


@pytest.mark.parametrize(
    ("lint", "expected"),
    [
        ("", ALL),
        ('select = ["DS110"]', {"DS110": "error"}),
        ('select = ["DS"]\nignore = ["DS11"]', {}),
        ('select = ["DS114", "DS110"]\nignore = ["DS11"]', {"DS110": "error", "DS114": "warning"}),
        ('ignore = ["DS110", "DS116"]', {"DS114": "warning"}),
        ('severity = {DS11 = "info", DS114 = "error"}', {"DS110": "info", "DS114": "error", "DS116": "info"}),
        ('per-file-ignores = {"configs/*" = ["DS110"]}', {"DS114": "warning", "DS116": "info"}),
        ('per-file-ignores = {"ds_*.json" = ["DS"]}', {}),
        ('per-file-ignores = {"other/*" = ["DS"]}', ALL),
    ],
)
def test_what_counts(lint: str, expected: dict[str, str], project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"[tool.dsgen.lint]\n{lint}")
    assert codes(capsys) == expected
    assert codes(capsys, "--isolated") == ALL


def test_flags_decide_over_the_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say('[tool.dsgen]\ndeepspeed = "0.16.3"\n[tool.dsgen.lint]\nselect = ["DS114"]\nignore = ["DS116"]')
    assert codes(capsys) == {}, "0.16.3 still reads the old name"
    assert codes(capsys, "--deepspeed", "0.16.4") == {"DS114": "warning"}
    assert codes(capsys, "--select", "DS110,DS116") == {"DS110": "error"}
    assert codes(capsys, "--select", "DS1", "--ignore", "DS110") == {}


def test_the_nearest_file_that_speaks_of_dsgen_counts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say('[tool.dsgen.lint]\nselect = ["DS110"]')
    say("[project]\nname = 'inner'", "configs")
    assert codes(capsys) == {"DS110": "error"}
    say("[tool.dsgen]", "configs")
    assert codes(capsys) == ALL


@pytest.mark.parametrize(
    ("key", "shown"),
    [('loaded-by = "transformers"', "transformers"), ("world-size = 3", "2 x 1 x 3 = 6")],
)
def test_target(key: str, shown: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"[tool.dsgen]\n{key}")
    sizes = '"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1'
    Path("configs/ds_config.json").write_text(f'{{{sizes}, "fp16": {{}}, "fp16": {{}}}}', "utf-8")
    main(["lint", "configs/ds_config.json"])
    out = capsys.readouterr().out
    assert shown in out, out


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[tool.dsgen", "1:12", "is not TOML"),
        ("[tool.dsgen]\ndeepspeed = 16", "2:1", "text in quotes"),
        ('[tool.dsgen]\n\n  deepspeed = "new"', "3:3", "a version"),
        ('[tool.dsgen]\nworld-size = "2"', "2:1", "a whole number"),
        ("[tool.dsgen]\nworld-size = true", "2:1", "a whole number"),
        ("[tool.dsgen]\nworld-size = 0", "2:1", "1 or more"),
        ('[tool.dsgen]\nloaded-by = "me"', "2:1", "one of deepspeed, transformers"),
        ('[tool.dsgen]\ndeepsped = "0.19.8"', "2:1", "did you mean 'deepspeed'?"),
        ('[tool.dsgen.lint]\nselct = ["DS"]', "2:1", "did you mean 'select'?"),
        ('[tool.dsgen]\nlint.select = "DS"', "2:1", "a list of codes"),
        ('[tool.dsgen]\nlint.select = ["DS999"]', "2:1", "no rule has the code 'DS999'"),
        ('[tool.dsgen.lint.severity]\nDS110 = "loud"', "2:1", "one of error, warning, info"),
        ('[tool.dsgen.lint.severity]\nZZ1 = "error"', "2:1", "no rule has the code 'ZZ1'"),
        ('[tool.dsgen.lint.per-file-ignores]\n"tests/*" = "DS"', "2:1", "a list of codes"),
        ("[tool]\ndsgen = 3", "2:1", "a table"),
        ("[tool.dsgen.lint]\nbaseline = 3", "2:1", "a path in quotes"),
    ],
)
def test_mistakes_are_said_with_their_place(
    text: str, place: str, words: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(text)
    assert main(["lint", "configs/ds_config.json"]) == 2
    err = capsys.readouterr().err
    assert f"{project / 'pyproject.toml'}:{place}: " in err
    assert words in err


def test_unknown_codes_in_flags_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "configs/ds_config.json", "--select", "ds110"]) == 2
    assert "did you mean DS110?" in capsys.readouterr().err


def test_a_pyproject_of_others_need_not_be_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say("this is [not toml")
    assert codes(capsys) == ALL
    Path("pyproject.toml").unlink()
    os.mkfifo("pyproject.toml")
    assert codes(capsys) == ALL


def test_what_readme_shows_is_understood(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (shown,) = (block for block in blocks if "[tool.dsgen]" in block)
    say(shown)
    Path("dsgen-baseline.json").write_text('{"version": 1, "findings": []}', "utf-8")
    assert codes(capsys) == ALL | {"DS201": "error"}
