"""How many processes a launch line starts, and that what only the machine knows stays unknown."""

import json
import sys
from pathlib import Path

import pytest

from dsgen.cli import main
from dsgen.lint.launches import accelerate_file, launches_in
from dsgen.lint.project import forget, target_of_file
from dsgen.lint.settings import Settings

Sizes = tuple[int | None, int | None]

# line -> (world size, processes per node)
LINES: dict[str, Sizes] = {
    "torchrun --nproc_per_node 8 train.py": (8, 8),
    "torchrun --nproc-per-node=8 --nnodes=2 --node_rank $RANK train.py --nproc_per_node 3": (16, 8),
    "torchrun train.py": (1, 1),
    "torchrun --nproc_per_node gpu train.py": (None, None),
    "torchrun --nproc_per_node $GPUS --nnodes 2 train.py": (None, None),
    "torchrun --nnodes 1:4 --nproc_per_node 8 train.py": (None, 8),
    "CUDA_VISIBLE_DEVICES=0,1 /opt/bin/torchrun --nproc_per_node 2 train.py": (2, 2),
    "python -m torch.distributed.run --nproc_per_node 4 train.py": (4, 4),
    "python3 -m torch.distributed.launch --nproc_per_node=4 train.py": (4, 4),
    "deepspeed --num_gpus=4 train.py": (4, 4),
    "deepspeed --num_gpus 8 --num_nodes 2 train.py": (16, 8),
    "deepspeed --include localhost:0,2,5 train.py": (3, 3),
    "deepspeed --include worker-1:0,1 train.py": (None, None),
    "deepspeed --hostfile hosts --num_gpus 8 train.py": (None, None),
    "deepspeed train.py": (None, None),
    "accelerate launch --num_processes 16 --num_machines 2 train.py": (16, 8),
    "accelerate launch --num_processes 3 --num_machines 2 train.py": (3, None),
    "accelerate launch train.py": (None, None),
    "python train.py": (1, 1),
    "python3.11 -u train.py": (1, 1),
    "python -m pdb train.py": (None, None),
    "torchrun \\\n  --nproc_per_node 8 \\\n  train.py": (8, 8),
}


@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    text = f"#!/bin/bash\nset -e\n\n{line}\n"
    (launch,) = launches_in(text, "train.py")
    assert (launch.world_size, launch.gpus_per_node) == LINES[line]
    assert launch.range[:2] == (4, 1)


@pytest.mark.parametrize("line", ["# torchrun --nproc_per_node 8 train.py", "cp train.py out", "echo 'train.py", ""])
def test_what_starts_nothing(line: str) -> None:
    assert list(launches_in(f"{line}\n", "train.py")) == []


@pytest.mark.parametrize(
    "text",
    ["#SBATCH --ntasks=4\npython train.py\n", "srun bash inner.sh\npython train.py\n", "mpirun -n 4 python train.py\n"],
)
def test_a_scheduler_multiplies(text: str) -> None:
    assert {launch.world_size for launch in launches_in(text, "train.py")} == {None}


def test_accelerate_files() -> None:
    found = accelerate_file("num_machines: 2\nnum_processes: 16  # in all\n")
    assert found is not None
    assert (found.world_size, found.gpus_per_node, found.range[:2]) == (16, 8, (2, 1))
    assert accelerate_file("mixed_precision: bf16\n") is None


CONFIG = '{"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}'
CODE = 'import deepspeed\nengine, *_ = deepspeed.initialize(model=m, config="ds.json")\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("ds.json").write_text(CONFIG, "utf-8")
    return tmp_path


def found() -> Sizes:
    forget()
    target = target_of_file("ds.json", {}, Settings())
    return target.world_size, target.gpus_per_node


def test_a_line_that_starts_the_code_that_names_the_config(project: Path) -> None:
    Path("train.py").write_text(CODE, "utf-8")
    assert found() == (None, None)
    Path("run.sh").write_text("torchrun --nproc_per_node 8 --nnodes 2 train.py\n", "utf-8")
    assert found() == (16, 8)
    Path("other.sh").write_text("torchrun --nproc_per_node 8 other.py --deepspeed other.json\n", "utf-8")
    assert found() == (16, 8), "another training"
    Path("small.sh").write_text("torchrun --nproc_per_node 8 train.py\n", "utf-8")
    assert found() == (None, None), "two that differ are no answer"


def test_what_is_stated_decides_over_the_line(project: Path) -> None:
    Path("run.sh").write_text("torchrun --nproc_per_node 8 train.py --deepspeed_config ds.json\n", "utf-8")
    forget()
    by_flag = target_of_file("ds.json", {"gpus_per_node": 4}, Settings())
    assert (by_flag.world_size, by_flag.gpus_per_node) == (8, 4)
    settled = target_of_file("ds.json", {}, Settings({"world_size": 2}))
    assert (settled.world_size, settled.launch) == (2, None)


def test_a_flag_decides_over_the_file_of_accelerate(project: Path) -> None:
    Path("acc.yaml").write_text("num_processes: 4\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n", "utf-8")
    assert found() == (4, 4)
    Path("run.sh").write_text("accelerate launch --config_file acc.yaml train.py\n", "utf-8")
    assert found() == (4, 4)
    Path("run.sh").write_text("accelerate launch --config_file acc.yaml --num_processes 2 train.py\n", "utf-8")
    assert found() == (2, 2)


def test_the_line_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.sh").write_text("\ntorchrun --nproc_per_node 8 train.py --deepspeed_config ds.json\n", "utf-8")
    main(["lint", "ds.json", "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "DS201"
    assert "4 x 2 x 8 = 64" in finding["message"]
    related = finding["related"][-1]
    assert (related["file"], related["line"], related["column"]) == ("run.sh", 2, 1)
    assert "8 processes" in related["message"]
    main(["lint", "ds.json"])
    assert "see run.sh:2:1: 8 processes" in capsys.readouterr().out
    main(["lint", "ds.json", "--isolated", "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert "no number of ranks fits" in finding["message"]
