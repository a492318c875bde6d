"""Examples are what dsgen writes today, byte for byte, and the real libraries read them."""

import ast
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from console import ROOT, dsgen, environment
from floors import imports

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/spec.yaml"))
SCRIPTS = [path for folder in EXAMPLES for path in sorted(folder.rglob("*.py"))]
NAMES = [folder.name for folder in EXAMPLES]
DEEPSPEED = [folder for folder in EXAMPLES if (folder / "ds_config.json").is_file()]
FSDP2 = [folder for folder in EXAMPLES if (folder / "sharding.py").is_file()]


def contents(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Every file by relative path: its bytes, and whether it may be executed."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_there_is_an_example_of_each_situation() -> None:
    assert len(DEEPSPEED) == 6
    assert [folder.name for folder in FSDP2] == ["llama-3.1-8b-8xh100-fsdp2"]
    assert set(EXAMPLES) == {*DEEPSPEED, *FSDP2}


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_every_file_is_remade_byte_for_byte(example: Path, tmp_path: Path) -> None:
    ran = dsgen("build", "spec.yaml", "-o", tmp_path / "out", cwd=example)
    assert ran.returncode == 0, ran.stderr
    checked_in = {name: file for name, file in contents(example).items() if name not in {"spec.yaml", "plan.txt"}}
    assert contents(tmp_path / "out") == checked_in


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_the_plan_is_the_one_shown(example: Path) -> None:
    ran = dsgen("plan", "spec.yaml", cwd=example)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (example / "plan.txt").read_text("utf-8")


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_check_agrees(example: Path, tmp_path: Path) -> None:
    assert dsgen("build", "spec.yaml", "-o", ".", "--check", cwd=example).returncode == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_the_layout_is_decided_not_dictated(example: Path) -> None:
    """An example shows what the planner finds; a wish would hide it."""
    assert "want:" not in (example / "spec.yaml").read_text("utf-8")


LEVERS = {
    # (ZeRO stage, optimizer offload, parameter offload): what makes each situation the one it stands for.
    "llama-2-7b-1x4090-nvme": (3, "nvme", {"none", "cpu", "nvme"}),
    "llama-3.1-8b-4xa10g": (3, "cpu", {"none", "cpu"}),
    "llama-3.1-70b-2x8xh200": (3, "none", {"none"}),
}


@pytest.mark.parametrize("name", LEVERS)
def test_the_levers_are_those_of_the_situation(name: str) -> None:
    zero = json.loads((ROOT / "examples" / name / "ds_config.json").read_text("utf-8"))["zero_optimization"]
    stage, optimizer, parameters = LEVERS[name]
    assert zero["stage"] == stage
    assert zero.get("offload_optimizer", {"device": "none"})["device"] == optimizer
    assert zero.get("offload_param", {"device": "none"})["device"] in parameters


def constants(script: Path) -> dict[str, Any]:
    """Literal values of the names in capitals at the top of a script."""
    found: dict[str, Any] = {}
    for node in ast.parse(script.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found |= {ast.unparse(target): node.value.value for target in node.targets}
    return found


@pytest.mark.parametrize("example", FSDP2, ids=[folder.name for folder in FSDP2])
def test_the_loop_steps_as_the_plan_says(example: Path) -> None:
    plan = json.loads(dsgen("plan", "spec.yaml", "--format", "json", cwd=example).stdout)["plan"]
    loop = constants(example / "train.py")
    asked = ("MICRO_BATCH", "ACCUMULATION", "REDUCE_EACH_MICRO_BATCH")
    assert {name: loop[name] for name in asked} == {name: plan[name.lower()] for name in asked}
    assert loop["MICRO_BATCH"] * loop["ACCUMULATION"] * plan["world_size"] == 32
    assert loop["SEQUENCE_LENGTH"] == 16384


def test_python_is_formatted_and_compiles() -> None:
    assert SCRIPTS
    for script in SCRIPTS:
        compile(script.read_text("utf-8"), str(script), "exec")
    # Isolated: a user's folder has no settings of ours.
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", *map(str, SCRIPTS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_generated_code_never_imports_dsgen(script: Path) -> None:
    names = {seen.module.partition(".")[0] for seen in imports(script.read_text("utf-8"), "script", set())}
    assert "dsgen" not in names


def trainer_arguments(example: Path, folder: Path) -> list[str]:
    """The arguments that build tells a person to pass to the Trainer, as a shell would split them."""
    ran = dsgen("build", "spec.yaml", "-o", folder / f"{example.name}.json", cwd=example)
    lines = [line for line in ran.stdout.splitlines() if line.strip().startswith("--per_device_train_batch_size")]
    assert len(lines) == 1, ran.stdout
    return [*shlex.split(lines[0]), "--output_dir", str(folder / "output"), "--use_cpu", "true"]


def test_the_real_libraries_read_every_config(tmp_path: Path) -> None:
    """One process, since importing DeepSpeed takes seconds; tests/load_examples.py says what it asks."""
    jobs = []
    for folder in DEEPSPEED:
        plan = json.loads(dsgen("plan", "spec.yaml", "--format", "json", cwd=folder).stdout)["plan"]
        job = {"config": str(folder / "ds_config.json"), "world_size": plan["world_size"], "arguments": None}
        if "transformers" in (folder / "spec.yaml").read_text("utf-8"):
            job["arguments"] = trainer_arguments(folder, tmp_path)
        job["batches"] = [plan["micro_batch"], plan["accumulation"], plan["global_batch"]]
        jobs.append(job)
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "load_examples.py", json.dumps(jobs)],
        cwd=tmp_path,
        env=environment(DS_ACCELERATOR="cpu"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {job["config"]: job["batches"] for job in jobs}
