"""``dsgen effective``: its two forms and its exit code."""

import json
import re
from pathlib import Path

import pytest

from dsgen.cli import main


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds_config.json"
    path.write_text('{"train_batch_size": 8, "foo": 1, "amp": {"enabled": false}}', "utf-8")
    return path


def test_text(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effective", str(config), "--deepspeed", "0.19.7"]) == 0
    acting, ignored = capsys.readouterr().out.split("\nIgnored\n")
    assert "What DeepSpeed 0.19.7 acts on" in acting
    assert ["gradient_clipping", "1.0", "default"] in [line.split() for line in acting.splitlines()]
    assert ignored.split(None, 2) == ["foo", "1", "no key that is read here\n"]


def test_json_and_a_refusal(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effective", str(config), "--deepspeed", "0.19.8", "--format", "json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["version"], shown["deepspeed"]) == (1, "0.19.8")
    assert {tuple(row["key"]): row["fate"] for row in shown["values"]}[("amp",)] == "refused"


@pytest.mark.parametrize("text", ["[1]", '{"a": ', "\x00"])
def test_what_is_no_config(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    assert main(["effective", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_a_file_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch", "utf-8")
    assert main(["effective", str(path)]) == 2
    assert "is not one DeepSpeed config" in capsys.readouterr().err


def test_yaml_is_read_as_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ds.yaml"
    file.write_text("train_batch_size: 8\nzero_optimization:\n  stage: 2\n", "utf-8")
    assert main(["effective", str(file), "--deepspeed", "0.19.8"]) == 0
    assert re.search(r"zero_optimization\.stage +2\n", capsys.readouterr().out)
