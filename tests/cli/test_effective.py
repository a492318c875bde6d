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


# What is given, the ranks, and what follows; sources: DeepSpeed's own _set_batch_related_parameters.
BATCH = [
    ({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6}, 8, {"gradient_accumulation_steps": 2}),
    ({"train_batch_size": 96, "gradient_accumulation_steps": 4}, 8, {"train_micro_batch_size_per_gpu": 3}),
    ({"train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 4}, 8, {"train_batch_size": 192}),
    ({"train_batch_size": 96}, 8, {"train_micro_batch_size_per_gpu": 12, "gradient_accumulation_steps": 1}),
    ({"train_micro_batch_size_per_gpu": 6}, 8, {"train_batch_size": 48, "gradient_accumulation_steps": 1}),
    ({"train_micro_batch_size_per_gpu": 6}, None, {"train_batch_size": None, "gradient_accumulation_steps": 1}),
    ({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6}, None, {"gradient_accumulation_steps": None}),
    ({"train_batch_size": 96, "gradient_accumulation_steps": 4}, None, {"train_micro_batch_size_per_gpu": None}),
    (
        {"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "sequence_parallel_size": 4},
        *(8, {"gradient_accumulation_steps": 8}),
    ),
]


@pytest.mark.parametrize(("given", "ranks", "derived"), BATCH)
def test_batch_sizes_follow_from_each_other(
    given: dict[str, int],
    ranks: int | None,
    derived: dict[str, int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(given), "utf-8")
    flags = ["--world-size", str(ranks)] if ranks else []
    assert main(["effective", str(path), "--deepspeed", "0.19.8", "--format", "json", *flags]) == 0
    rows = json.loads(capsys.readouterr().out)["values"]
    assert {row["key"][0]: row["value"] for row in rows if row["origin"] == "derived"} == derived
    assert all(row["why"] for row in rows if row["origin"] == "derived")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 6}, "auto"),
        ({"train_batch_size": 8, "elasticity": {"enabled": True}}, "elasticity"),
    ],
)
def test_nothing_follows_where_somebody_else_chooses(
    config: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(config), "utf-8")
    main(["effective", str(path), "--world-size", "8", "--format", "json"])
    assert "derived" not in {row["origin"] for row in json.loads(capsys.readouterr().out)["values"]}, said


def test_the_sizes_are_those_of_deepspeed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"train_micro_batch_size_per_gpu": 6}', "utf-8")
    assert main(["effective", str(path), "--world-size", "8"]) == 0
    lines = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    assert ["train_batch_size", "48", "derived: 6 x 1 x 8 data-parallel ranks"] in lines
    assert main(["effective", str(path)]) == 0
    lines = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    assert ["train_batch_size", "null", "derived: 6 x 1 x the data-parallel ranks (--world-size)"] in lines


def test_keys_that_do_not_go_together_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    sizes = {"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}
    path.write_text(json.dumps(sizes | {"fp16": {"enabled": True}, "bf16": {"enabled": True}}), "utf-8")
    assert main(["effective", str(path), "--deepspeed", "0.19.8", "--world-size", "1"]) == 1
    errors = capsys.readouterr().out.partition("\nErrors\n")[2]
    assert "96 != 6 x 8 x 1 = 48" in errors
    assert "[DS201]" in errors
    assert main(["effective", str(path), "--deepspeed", "0.19.8", "--world-size", "2", "--format", "json"]) == 1
    codes = {error["code"]: error["key"] for error in json.loads(capsys.readouterr().out)["errors"]}
    assert "DS201" not in codes
    assert [key for key in codes.values() if key[0] in ("fp16", "bf16")]


def test_what_is_told_as_refused_is_not_told_twice(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effective", str(config), "--deepspeed", "0.19.8", "--format", "json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["errors"] == []
