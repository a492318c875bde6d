"""``dsgen upgrade``: what it prints and writes, and its exit code."""

import json
from pathlib import Path

import pytest

from dsgen.cli import main

FROM_TO = ("--from", "deepspeed==0.16.4", "--to", "deepspeed==0.19.8")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds_config.json"
    path.write_bytes(b'{\r\n  "train_batch_size": 8,\r\n  "amp": {"enabled": false}\r\n}\r\n')
    return path


def test_shows_what_changes_and_the_edits(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = config.read_bytes()
    assert main(["upgrade", str(config), *FROM_TO]) == 1
    shown = capsys.readouterr().out
    assert f"{config}:1:1: gradient_clipping: 0.0 by default -> 1.0 by default; kept by an edit" in shown
    assert '+  "gradient_clipping": 0.0' in shown
    assert '-  "amp": {"enabled": false}' in shown
    assert config.read_bytes() == before


def test_writes_the_edits_and_is_quiet_then(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", str(config), *FROM_TO, "--write"]) == 1
    assert config.read_bytes() == b'{\r\n  "train_batch_size": 8,\r\n  "gradient_clipping": 0.0\r\n}\r\n'
    assert main(["upgrade", str(config), "--from", "deepspeed==0.19.8", "--to", "deepspeed==0.19.8"]) == 0
    assert "no changes" in capsys.readouterr().out


def test_json(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", str(config.parent), *FROM_TO, "--format", "json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["version"] == 1
    [file] = shown["files"]
    assert {tuple(change["key"]): change["kept"] for change in file["changes"]} == {
        ("gradient_clipping",): True,
        ("amp",): True,
    }


def test_an_unknown_version(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", str(config), "--from", "deepspeed==0.1", "--to", "deepspeed==0.19.8"]) == 2
    assert "0.14.0 to 0.19.8" in capsys.readouterr().err


def test_yaml_is_left_out_and_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ds.yaml"
    file.write_text("train_batch_size: 8\naio:\n  thread_count: 4\n", "utf-8")
    assert main(["upgrade", str(file), "--from", "deepspeed==0.16.3", "--to", "deepspeed==0.19.8", "--write"]) == 0
    assert "only JSON and HJSON are edited" in capsys.readouterr().err
    assert "thread_count" in file.read_text("utf-8")
