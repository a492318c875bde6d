"""Launch lines and scripts: how many processes on how many nodes; what only the run knows stays unknown."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dsgen.cli import main


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def spec_of(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The spec of a launch script as YAML values, and what was said."""
    Path("run.sh").write_text(line, encoding="utf-8")
    code = main(["init", "--from", "run.sh", "-o", "made.yaml", "--force"])
    said = capsys.readouterr().err
    assert code == 0, said
    return yaml.safe_load(Path("made.yaml").read_text(encoding="utf-8")) or {}, said


@pytest.mark.parametrize(
    ("line", "gpus", "nodes"),
    [
        ("torchrun --nproc_per_node=4 --nnodes 2 train.py", 4, 2),
        ("torchrun --standalone --nproc-per-node 2 train.py", 2, 1),
        ("torchrun train.py", 1, 1),
        ("python -m torch.distributed.run --nproc_per_node 8 train.py", 8, 1),
        ("python3 -m torch.distributed.launch --nproc_per_node=8 --use_env train.py", 8, 1),
        ("deepspeed --num_gpus=8 --num_nodes 2 train.py --deepspeed", 8, 2),
        ("deepspeed --include localhost:0,1,2 train.py", 3, 1),
        ("deepspeed --include 'a:0,1@b:0,1' train.py", 2, 2),
        ("accelerate launch --num_processes 16 --num_machines 2 train.py", 8, 2),
        ("accelerate launch --multi_gpu --num_processes 4 train.py", 4, 1),
        ("srun -N4 --ntasks-per-node=8 python train.py", 8, 4),
        ("srun --nodes 2 --gpus-per-node a100:4 torchrun --nproc_per_node 4 --nnodes 2 train.py", 4, 2),
        ("CUDA_VISIBLE_DEVICES=2,3 python train.py", 2, None),
        ("mpirun -np 16 python train.py", 8, 2),
        ("srun --ntasks=12 python train.py", 6, 2),
        ("#SBATCH --nodes=3\n#SBATCH --ntasks=12\nsrun python train.py", 4, 3),
        ("NPROC=6 && torchrun --nproc_per_node $NPROC --nnodes ${NNODES:-3} train.py", 6, 3),
    ],
)
def test_launch_lines_say_how_many(line: str, gpus: int, nodes: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    spec, _ = spec_of(line, capsys)
    assert spec["hardware"]["gpus_per_node"] == gpus
    assert spec["hardware"].get("nodes") == nodes


def test_a_clusters_own_name_of_a_gpu_stays_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    spec, said = spec_of("#SBATCH --gres=gpu:bigmem:4\nsrun torchrun train.py\n", capsys)
    assert "gpu" not in spec["hardware"]
    assert "says bigmem, which is no preset" in said


def test_what_only_the_run_knows_stays_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    text = "torchrun --nproc_per_node gpu --nnodes $WORLD train.py --learning_rate $LR --max_steps $(wc -l data)\n"
    spec, said = spec_of(text, capsys)
    assert "hardware" not in spec
    assert "learning_rate" in said
    assert "gpus_per_node" in said


def test_variables_that_double_with_each_line_are_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    doubled = "".join(f"A{at + 1}=$A{at}$A{at}\n" for at in range(60))
    spec, _ = spec_of(f"A0=x\n{doubled}torchrun --nproc_per_node 2 train.py --tag $A60\n", capsys)
    assert spec["hardware"]["gpus_per_node"] == 2


def test_a_hostfile_says_how_many_nodes_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """deepspeed/launcher/runner.py:_parse_hostfile."""
    Path("hosts").write_text("# ours\nnode-1 slots=8\nnode-2 slots=8 # new\n\n", encoding="utf-8")
    spec, _ = spec_of("deepspeed --hostfile hosts train.py", capsys)
    assert spec["hardware"] == {"gpus_per_node": 8, "nodes": 2}
    spec, _ = spec_of("deepspeed --hostfile hosts --num_gpus 4 train.py", capsys)
    assert spec["hardware"] == {"gpus_per_node": 4, "nodes": 2}
    Path("hosts").write_text("a slots=8\nb slots=4\n", encoding="utf-8")
    spec, _ = spec_of("deepspeed --hostfile hosts train.py", capsys)
    assert spec["hardware"] == {"nodes": 2}
    _, said = spec_of("deepspeed --hostfile /job/hostfile train.py", capsys)
    assert "hardware.nodes: run.sh: --hostfile /job/hostfile, which is not there, says it" in said
