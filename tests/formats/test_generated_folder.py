"""A built folder really trains: both launchers, two processes, the real DeepSpeed and the real Trainer."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from console import environment
from written_plans import written

from dsgen.formats.values import Written
from dsgen.plan import Checkpointing, ZeroPP
from dsgen.spec.values import Method, Scheduler, Training

# Longer than the slowest build of the one op that DeepSpeed compiles for a CPU's communication.
LIMIT = 400
SCHEDULE = Scheduler(type="cosine", warmup_steps=2, total_steps=50)


def unpack(made: Written, folder: Path) -> Path:
    for name, text in made.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name in made.executable:
            path.chmod(0o755)
    return folder


def train(folder: Path, launcher: str, *arguments: str, processes: int = 2) -> str:
    ran = subprocess.run(
        [folder / "launch" / launcher, "--size", "tiny", *arguments],
        env=environment(DS_ACCELERATOR="cpu", NPROC=str(processes)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    return ran.stdout


def steps(output: str) -> dict[int, str]:
    """Step to what it logged, without the speed."""
    found = re.findall(r"^step (\d+)  (.*?)  tokens/s", output, re.MULTILINE)
    return {int(number): rest for number, rest in found}


@pytest.mark.parametrize("stage", [2, pytest.param(3, marks=pytest.mark.full)])
def test_it_trains_and_resumes_where_it_was(stage: int, tmp_path: Path) -> None:
    training = Training(scheduler=SCHEDULE, attention="flash")
    made = written(
        zero_stage=stage, accumulation=2, checkpointing=Checkpointing("full"), training=training, folder=True
    )
    folder = unpack(made, tmp_path)
    whole = steps(train(folder, "deepspeed.sh", "--steps", "5", "--save-every", "3"))
    assert list(whole) == [1, 2, 3, 4, 5]
    # As if it had been stopped after the first save. The same losses mean the same weights, moments,
    # learning rate and data.
    (folder / "checkpoints" / "latest").write_text("global_step3", encoding="utf-8")
    resumed = steps(train(folder, "torchrun.sh", "--steps", "5", "--resume", "--save-every", "1"))
    assert resumed == {step: whole[step] for step in (4, 5)}
    # What it resumed from is removed when two newer ones are there.
    kept = sorted(path.name for path in (folder / "checkpoints").glob("global_step*"))
    assert kept == ["global_step4", "global_step5"]


def test_where_there_is_no_norm_none_is_shown(tmp_path: Path) -> None:
    """In fp32 without ZeRO DeepSpeed keeps none; 0.000 would be a gradient that has vanished."""
    folder = unpack(written(zero_stage=0, precision="fp32", folder=True), tmp_path)
    (line,) = steps(train(folder, "torchrun.sh", "--steps", "1")).values()
    assert re.fullmatch(r"loss \d+\.\d+  lr \S+  grad norm -", line)


def test_the_trainer_trains(tmp_path: Path) -> None:
    """At stage 3, where the model is made sharded: the Trainer's arguments have to come first."""
    made = written(
        zero_stage=3,
        loaded_by="transformers",
        accumulation=2,
        checkpointing=Checkpointing("full"),
        training=Training(scheduler=SCHEDULE),
        folder=True,
    )
    output = train(unpack(made, tmp_path), "torchrun.sh", "--steps", "2")
    assert len(re.findall(r"'loss'", output)) == 2
    # Whole weights, not one rank's share: some 115,000 parameters of two bytes.
    assert (tmp_path / "checkpoints" / "model.safetensors").stat().st_size > 200_000


GRID: list[dict[str, Any]] = [
    {"zero_stage": 0},
    {"zero_stage": 3, "world_size": 16, "training": Training(scheduler=SCHEDULE)},
    {"zero_stage": 2, "checkpointing": Checkpointing("every", 2), "training": Training(method=Method(type="lora"))},
    {"zero_stage": 1, "loaded_by": "transformers", "precision": "fp16", "checkpointing": Checkpointing("full")},
    {
        "zero_stage": 3,
        "loaded_by": "transformers",
        "training": Training(method=Method(type="lora", targets=("q_proj",))),
    },
    {"zero_stage": 2, "model": "qwen3-30b-a3b", "precision": "fp32", "checkpointing": Checkpointing("selective")},
    {"zero_stage": 2, "loaded_by": "transformers", "tensor_parallel": 2},
    {"zero_stage": 3, "loaded_by": "transformers", "ulysses": 4},
    {"zero_stage": 3, "zeropp": ZeroPP(quantized_weights=True, quantized_gradients=True)},
]


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    for number, fields in enumerate(GRID):
        unpack(written(folder=True, **fields), tmp_path / f"folder{number}")
    return tmp_path


def check(*command: str | Path, cwd: Path) -> None:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_ruff_finds_nothing_to_change(grid: Path) -> None:
    check(sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--check", ".", cwd=grid)
    check(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", ".", cwd=grid)


def test_bash_reads_the_launchers(grid: Path) -> None:
    for script in grid.rglob("*.sh"):
        check("bash", "-n", script, cwd=grid)


def test_nothing_imports_dsgen(grid: Path) -> None:
    assert not [path for path in grid.rglob("*.py") if re.search(r"\bdsgen\b", path.read_text("utf-8"))]


def test_several_nodes_get_a_hostfile(grid: Path) -> None:
    comment, *nodes = (grid / "folder1" / "launch" / "hostfile").read_text("utf-8").splitlines()
    # deepspeed/launcher/runner.py:_parse_hostfile passes over lines that begin so.
    assert comment.startswith("#")
    assert nodes == ["node-1 slots=8", "node-2 slots=8"]
    assert not (grid / "folder0" / "launch" / "hostfile").exists()


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(GRID)))
def test_mypy_agrees(number: int, grid: Path) -> None:
    # Not strict: DeepSpeed and transformers carry few types. peft need not be installed.
    check(
        sys.executable,
        "-m",
        "mypy",
        "--ignore-missing-imports",
        "--no-incremental",
        "train.py",
        cwd=grid / f"folder{number}",
    )
