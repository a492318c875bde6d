"""dsgen build for FSDP2, as a person does it: spec in, folder out, its own launcher started."""

import subprocess
from pathlib import Path

import pytest
from console import dsgen, environment

SPEC = """
model: llama-2-7b
hardware: {gpu: a100-80gb-sxm, gpus_per_node: 4}
training:
  sequence_length: 1024
  global_batch: 32
  scheduler: {type: cosine, warmup_steps: 1, total_steps: 10}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, "utf-8")
    return path


def test_to_decides_anew_for_the_other_format(spec: Path) -> None:
    """Stage 1 is what DeepSpeed would get here; FSDP2 has none."""
    spec.write_text(f"{SPEC}want: {{zero_stage: 1}}\n", "utf-8")
    assert dsgen("build", spec, cwd=spec.parent).returncode == 0
    refused = dsgen("build", spec, "--to", "fsdp2", cwd=spec.parent)
    assert refused.returncode == 1
    assert f"{spec}:8:20: " in refused.stderr
    assert "no ZeRO stage 1" in refused.stderr


def test_target_says_the_same_as_to(spec: Path) -> None:
    asked = dsgen("build", spec, "--to", "fsdp2", cwd=spec.parent)
    spec.write_text(f"{SPEC}target: {{format: fsdp2}}\n", "utf-8")
    written = dsgen("build", spec, cwd=spec.parent)
    assert (asked.returncode, written.returncode) == (0, 0)
    assert asked.stdout == written.stdout
    compile(asked.stdout, "sharding.py", "exec")


def test_the_code_is_not_called_a_config(spec: Path) -> None:
    ran = dsgen("build", spec, "--to", "fsdp2", "-o", "sharding.py", cwd=spec.parent)
    assert "\nsharding.py can't say this; say it where it belongs:\n" in ran.stdout
    assert "config can't" not in ran.stdout


def test_an_unknown_format_is_named(spec: Path) -> None:
    ran = dsgen("build", spec, "--to", "fsdp3", cwd=spec.parent)
    assert ran.returncode == 2
    assert "deepspeed, fsdp2" in ran.stderr


def test_the_folder_trains_from_its_own_launcher(spec: Path) -> None:
    folder = spec.parent / "out"
    assert dsgen("build", spec, "--to", "fsdp2", "-o", f"{folder}/", cwd=spec.parent).returncode == 0
    assert dsgen("build", spec, "--to", "fsdp2", "-o", f"{folder}/", "--check", cwd=spec.parent).returncode == 0

    def launch(*arguments: str) -> str:
        ran = subprocess.run(
            [folder / "launch" / "torchrun.sh", "--size", "tiny", *arguments],
            cwd=spec.parent,
            env=environment(NPROC="2", PYTHONPATH=""),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout

    assert [line.split()[1] for line in launch("--steps", "2").splitlines()] == ["1", "2"]
    resumed = launch("--steps", "4", "--resume", "--save-every", "1")
    assert [line.split()[1] for line in resumed.splitlines()] == ["3", "4"]
    # What it resumed from is removed when two newer ones are there.
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-00000003", "step-00000004"]
