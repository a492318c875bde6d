"""``dsgen plan --sweep`` as people and scripts call it."""

import json
from pathlib import Path
from typing import Any

import pytest
from console import dsgen

SPEC = """\
model: llama-3.1-8b
hardware: {gpu: h100-80gb-sxm, host_memory: 1TiB}
training: {sequence_length: 4096, attention: flash, global_batch: 128}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, "utf-8")
    return path


def swept(path: Path, *flags: str, code: int = 0) -> dict[str, Any]:
    ran = dsgen("plan", path.name, "--format", "json", *flags, cwd=path.parent)
    assert ran.returncode == code, ran.stderr
    return dict(json.loads(ran.stdout))


def test_each_row_is_the_plan_of_that_spec(written: Path) -> None:
    answer = swept(written, "--sweep", "gpus=8,64")
    assert (answer["version"], answer["sweep"]) == (1, ["gpus"])
    assert [row["gpus"] for row in answer["rows"]] == [8, 64]
    sixty_four = SPEC.replace("h100-80gb-sxm,", "h100-80gb-sxm, gpus_per_node: 8, nodes: 8,")
    (written.parent / "64.yaml").write_text(sixty_four, "utf-8")
    ran = dsgen("plan", "64.yaml", "--format", "json", cwd=written.parent)
    alone = json.loads(ran.stdout)
    row = answer["rows"][1]
    assert row["plan"] == alone["plan"]
    assert row["tokens_per_second_per_gpu"] == alone["tokens_per_second_per_gpu"]
    assert row["tokens_per_second"] == 64 * row["tokens_per_second_per_gpu"]


def test_hours_and_cost(written: Path) -> None:
    (row,) = swept(written, "--sweep", "gpus=8", "--tokens", "2B", "--price", "2.5")["rows"]
    hours = 2e9 / row["tokens_per_second"] / 3600
    assert row["run"] == {"tokens": 2 * 10**9, "hours": pytest.approx(hours), "cost": pytest.approx(hours * 8 * 2.5)}
    one = swept(written, "--tokens", "2B")
    assert one["run"]["cost"] is None
    assert one["run"]["hours"] == pytest.approx(2e9 / one["tokens_per_second_per_gpu"] / 3600)
    assert swept(written)["run"] is None


def test_refused_rows_say_why(written: Path) -> None:
    rows = swept(written, "--sweep", "gpus=8,12,256")["rows"]
    assert [row["fits"] for row in rows] == [True, False, False]
    assert rows[1]["refusal"] == "12 GPUs are no whole number of nodes of 8"
    assert "can't be shared equally by 256" in rows[2]["refusal"]
    assert rows[1]["plan"] is None


def test_what_misses_by_least_where_nothing_fits(written: Path) -> None:
    answer = swept(written, "--sweep", "zero_stage=0", "--sweep", "gpus=8", code=1)
    (row,) = answer["rows"]
    assert row["values"] == {"zero_stage": "0", "gpus": "8"}
    assert not row["fits"]
    assert row["plan"]["zero_stage"] == 0
    assert "over by" in row["refusal"]


@pytest.mark.parametrize(
    ("sweep", "count"),
    [
        ("nodes=1,2", 2),
        ("node=p4d.24xlarge,p5.48xlarge", 2),
        ("gpu=a100-80gb-sxm,h100-80gb-sxm,b200", 3),
        ("model=llama-3.1-8b,mistral-7b-v0.3", 2),
        ("sequence_length=2048,8192,max", 3),
        ("micro_batch=1,2,max", 3),
        ("global_batch=64,128", 2),
        ("zero_stage=1,2,3", 3),
        ("checkpointing=none,full", 2),
        ("offload_optimizer=none,cpu", 2),
        ("method=full,lora", 2),
        ("memory_budget=40GiB,70GiB", 2),
        ("loaded_by=deepspeed,transformers", 2),
        ("format=deepspeed,fsdp2", 2),
    ],
)
def test_keys_that_can_be_swept(written: Path, sweep: str, count: int) -> None:
    written.write_text(SPEC.replace("h100-80gb-sxm,", "h100-80gb-sxm, gpus_per_node: 8,"), "utf-8")
    rows = swept(written, "--sweep", sweep)["rows"]
    assert len(rows) == count
    assert any(row["fits"] for row in rows)
    if sweep.startswith("sequence_length"):
        assert rows[-1]["sequence_length"] > 8192


def test_a_table_and_bars(written: Path) -> None:
    ran = dsgen("plan", written.name, "--sweep", "gpus=8,16,12", "--tokens", "1B", cwd=written.parent)
    assert ran.returncode == 0
    lines = ran.stdout.splitlines()
    assert lines[0].split()[:2] == ["gpus", "plan"]
    assert [line.split()[0] for line in lines[1:4]] == ["8", "16", "12"]
    bars = [line for line in lines if "#" in line]
    assert len(bars) == 2
    assert bars[1].count("#") == 40 > bars[0].count("#")
    assert "  - gpus 12: 12 GPUs are no whole number of nodes of 8" in lines


def test_two_keys_make_every_combination(written: Path) -> None:
    rows = swept(written, "--sweep", "gpus=8,16", "--sweep", "zero_stage=1,3")["rows"]
    assert [tuple(row["values"].values()) for row in rows] == [("8", "1"), ("8", "3"), ("16", "1"), ("16", "3")]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--sweep", "gpus"), "no KEY=VALUE"),
        (("--sweep", "gpus="), "no KEY=VALUE"),
        (("--sweep", "gpus=8,,16"), "no KEY=VALUE"),
        (("--sweep", "gpus=many"), "no number of GPUs"),
        (("--sweep", "gpus=0"), "no number of GPUs"),
        (("--sweep", "zero_stge=1"), "did you mean zero_stage"),
        (("--sweep", "zero_stage=7"), "dsgen: --sweep: want.zero_stage must be at most 3"),
        (("--sweep", "format=fsdp2,fsdp1"), "dsgen: --sweep: target.format: 'fsdp1' is not supported yet"),
        (("--sweep", "gpu=h1000"), "unknown GPU"),
        (("--sweep", "gpus=8", "--sweep", "gpus=16"), "stands twice"),
        (("--price", "2"), "--price needs --tokens"),
        (("--tokens", "some"), "--tokens"),
        (("--tokens", "-1"), "--tokens"),
        (("--tokens", "2B", "--price", "1e308"), "--price 1e+308 is none of a GPU hour"),
    ],
)
def test_a_flag_that_says_nothing_is_2(written: Path, flags: tuple[str, ...], words: str) -> None:
    ran = dsgen("plan", written.name, *flags, cwd=written.parent)
    assert "Traceback" not in ran.stderr
    if "h1000" in str(flags):
        # What does not exist is a row's refusal: the other rows are still worth having.
        assert (ran.returncode, words in ran.stdout) == (1, True)
        return
    assert ran.returncode == 2, ran.stdout
    assert words in ran.stderr
