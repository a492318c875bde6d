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


def upgraded(
    name: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str], *versions: str
) -> tuple[list[tuple[str, bool]], str]:
    """The keys that change and whether they are kept, and the file as it is written."""
    path = folder / name
    path.write_bytes(text.encode())
    from_to = FROM_TO if not versions else ("--from", f"deepspeed=={versions[0]}", "--to", f"deepspeed=={versions[1]}")
    main(["upgrade", str(path), *from_to, "--format", "json", "--write"])
    shown = json.loads(capsys.readouterr().out)
    changes = [change for file in shown["files"] for change in file["changes"]]
    return [(".".join(change["key"]), change["kept"]) for change in changes], path.read_bytes().decode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_yaml_is_edited_where_it_stands(line_end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "train_batch_size: 8  # eight\naio:\n  thread_count: 4\namp: {enabled: false}\n".replace("\n", line_end)
    changes, after = upgraded("ds.yaml", text, tmp_path, capsys, "0.16.3", "0.19.8")
    assert sorted(changes) == [("aio.thread_count", True), ("amp", True), ("gradient_clipping", True)]
    kept = "train_batch_size: 8  # eight\naio:\n  intra_op_parallelism: 4\ngradient_clipping: 0.0\n"
    assert after == kept.replace("\n", line_end)
    assert upgraded("ds.yaml", after, tmp_path, capsys, "0.19.8", "0.19.8") == ([], after)


def test_several_sections_of_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "first:\n  deepspeed:\n    train_batch_size: 8\nsecond:\n  ds_config:\n    train_batch_size: 4\n"
        "    gradient_clipping: 1.0\nthird:\n  deepspeed: {train_batch_size: 2}\n"
    )
    changes, after = upgraded("runs.yaml", text, tmp_path, capsys)
    assert changes == [("gradient_clipping", True)] * 2
    assert after == text.replace("train_batch_size: 8\n", "train_batch_size: 8\n    gradient_clipping: 0.0\n").replace(
        "{train_batch_size: 2}", "{train_batch_size: 2, gradient_clipping: 0.0}"
    )


CODE = """\
import deepspeed

config = {
    "train_batch_size": n,  # given
    "aio": {"thread_count": 4},
    "fp16": {'enabled': False, "opt_level": level},
    "steps_per_print": every(),
}
engine, *_ = deepspeed.initialize(model=model, config=config)
"""


def test_a_dict_in_code_is_edited_where_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes, after = upgraded("train.py", CODE, tmp_path, capsys, "0.15.1", "0.19.8")
    # Nothing is said of what code computes: of the steps, or of the level that the new version refuses.
    assert sorted(changes) == [("aio.thread_count", True), ("gradient_clipping", True)]
    assert after == CODE.replace('"thread_count"', '"intra_op_parallelism"').replace(
        "every(),\n", 'every(),\n    "gradient_clipping": 0.0,\n'
    )


def test_what_code_computes_is_not_written_a_second_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = CODE.replace("every(),", 'every(), "gradient_clipping": clip,')
    changes, after = upgraded("train.py", code, tmp_path, capsys)
    assert changes == []
    assert after == code


ACCELERATE = """\
distributed_type: DEEPSPEED
mixed_precision: bf16
deepspeed_config:
  zero_stage: 2
  offload_optimizer_device: cpu
"""


def test_what_accelerate_makes_of_its_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Accelerate fills gradient_clipping in and sets steps_per_print, so their new defaults change nothing; it has no
    # keys for the overflow check of bf16 (0.19.3) and for pinned memory (0.19.5).
    changes, after = upgraded("accelerate.yaml", ACCELERATE, tmp_path, capsys, "0.15.1", "0.19.8")
    lost = {key for key, kept in changes if not kept}
    assert {"bf16.check_grad_overflow", "zero_optimization.offload_optimizer.pin_memory"} <= lost
    assert not {key for key, _ in changes} & {"gradient_clipping", "steps_per_print"}
    assert after == ACCELERATE
    # A clipping of 0 never reaches DeepSpeed: it is the default that acts.
    clipped, _ = upgraded("accelerate.yaml", ACCELERATE + "  gradient_clipping: 0.0\n", tmp_path, capsys)
    assert ("gradient_clipping", False) in clipped
    main(["upgrade", str(tmp_path / "accelerate.yaml"), *FROM_TO])
    shown = capsys.readouterr().out
    assert "accelerate.yaml:3:1: " in shown or "accelerate.yaml:4:3: " in shown
    assert "name it as deepspeed_config_file" in shown


def test_what_holds_no_config_is_said_where_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.py").write_text("import torch\nloss.backward()\n", "utf-8")
    assert main(["upgrade", str(tmp_path / "x.py"), *FROM_TO]) == 0
    assert "x.py: left out, it holds no DeepSpeed config" in capsys.readouterr().err
    assert main(["upgrade", str(tmp_path), *FROM_TO]) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "x.yaml").write_text("train_batch_size: [\n", "utf-8")
    assert main(["upgrade", str(tmp_path / "x.yaml"), *FROM_TO]) == 2
    assert "x.yaml:2:1: " in capsys.readouterr().err
