"""What is written for FSDP2 trains as a plain loop in one process does, to rounding.

TOLERANCE: in fp32 the two differ by the order of sums over ranks and micro-batches: 2e-7 to 2e-6 of the movement.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from console import environment
from fsdp2_folders import job

from dsgen.plan import Checkpointing
from dsgen.spec.values import Method, Optimizer, Scheduler

TOLERANCE = 1e-5
HERE = Path(__file__).resolve().parent
# 2 ranks take 25 sequences each: 12 micro-batches of two and one of one, so windows of 4, 4, 4 and 1 micro-batch.
SEQUENCES = 51

SGD = Optimizer(type="sgd", lr=0.1, momentum=0.9, weight_decay=0.01)
LINEAR = Scheduler(type="linear", warmup_steps=1, total_steps=8)
ON_CPU = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}

TWO: dict[str, dict[str, Any]] = {
    "stage 3": {"checkpointing": Checkpointing("full"), "resume_at": 3},
    "stage 3, accumulation, epochs, uneven targets": {"accumulation": 4, "masked": True, "resume_at": 5, "steps": 7},
    "stage 3, accumulation reduced each time": {"accumulation": 4, "reduce_each_micro_batch": True, "masked": True},
    "stage 2, accumulation": {"zero_stage": 2, "accumulation": 4, "checkpointing": Checkpointing("selective")},
    "stage 2, sgd, tight clipping": {
        "zero_stage": 2,
        "optimizer": SGD,
        "scheduler": LINEAR,
        "clipping": 0.1,
        "accumulation": 2,
        "checkpointing": Checkpointing("every", 2),
    },
    "offload": {**ON_CPU, "accumulation": 4, "reduce_each_micro_batch": True, "resume_at": 2},
    "offload, reduced once": {**ON_CPU, "accumulation": 2, "scheduler": None},
    "adapters": {"method": Method(type="lora", rank=4, alpha=8.0, targets="all-linear"), "accumulation": 2},
    "dropout": {"method": Method(type="lora", dropout=0.5), "resume_at": 1, "steps": 2},
    "experts": {"model": "mixtral-8x7b", "accumulation": 2, "checkpointing": Checkpointing("full")},
    "a class of transformers": {
        "loaded_by": "transformers",
        "accumulation": 2,
        "checkpointing": Checkpointing("selective"),
    },
    "a class of transformers, tied, offloaded": {**ON_CPU, "loaded_by": "transformers", "model": "qwen2.5-0.5b"},
    "a model of one's own": {
        "factory": "own_model:build",
        # Without rotation a key's bias has no gradient but rounding, which Adam would blow up to its full rate.
        "optimizer": SGD,
        "accumulation": 2,
        "checkpointing": Checkpointing("full"),
        "resume_at": 2,
    },
    "published weights": {"weights": True, "checkpointing": Checkpointing("full"), "resume_at": 2},
    "published weights, offload": {**ON_CPU, "weights": True},
    "overflow": {"precision": "fp16", "loss_scale": 2.0**100, "steps": 3, "accumulation": 2},
    "tied": {"model": "qwen2.5-0.5b", "accumulation": 2, "clipping": 0.0},
}
FOUR: dict[str, dict[str, Any]] = {
    "groups": {"shard_group": 2, "accumulation": 2, "masked": True, "resume_at": 2},
    "groups reduced each time": {"shard_group": 2, "accumulation": 3, "reduce_each_micro_batch": True},
    "groups, stage 2": {"shard_group": 2, "zero_stage": 2, "accumulation": 2, "checkpointing": Checkpointing("full")},
    "four": {"accumulation": 2},
}


def run(folder: Path, world: int, cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    data = folder / "tokens.bin"
    np.random.default_rng(0).integers(0, 256, SEQUENCES * 32, dtype=np.uint16).tofile(data)
    jobs = [job(name, folder / str(index), data, world, **asked) for index, (name, asked) in enumerate(cases.items())]
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs), "utf-8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    ran = subprocess.run(
        [*launch, HERE / "train_folders.py", file],
        cwd=folder,
        env=environment(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-6000:]
    answers: dict[str, Any] = json.loads(file.with_suffix(".answers.json").read_text("utf-8"))
    return answers


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("two"), 2, TWO)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("four"), 4, FOUR)


@pytest.mark.parametrize("name", [name for name in TWO if name not in {"overflow", "dropout"}])
def test_two_ranks_train_as_one_process(two: dict[str, Any], name: str) -> None:
    assert two[name]["difference"] < TOLERANCE


@pytest.mark.parametrize("name", FOUR)
def test_four_ranks_train_as_one_process(four: dict[str, Any], name: str) -> None:
    assert four[name]["difference"] < TOLERANCE


@pytest.mark.parametrize("name", [name for name, asked in TWO.items() if "resume_at" in asked])
def test_a_resumed_training_is_the_same_to_the_bit(two: dict[str, Any], name: str) -> None:
    assert two[name]["resumed"]


def test_groups_resume_too(four: dict[str, Any]) -> None:
    assert four["groups"]["resumed"]


def test_a_step_that_overflows_is_left_out_on_every_rank(two: dict[str, Any]) -> None:
    """Three steps at a scale that no gradient survives: nothing moves, the scale is halved each time, the learning rate
    has not begun to rise."""
    seen = two["overflow"]
    assert seen["moved"] == 0
    assert seen["scale"] == 2.0**97
    assert seen["scheduled"] == 0
    assert seen["progress"]["step"] == 3


# The tiny decoder has two blocks, so three units with the root. At stage 3 blocks are gathered twice, in the forward
# and in the backward pass, the root once. What the ranks say beside it: two sums a step, of targets and of losses.
MICRO_BATCHES = 4 + 4 + 4 + 1 + 4
COUNTS = {
    "stage 3": (5 * 5, 3 * 5, 2 * 5),
    "stage 3, accumulation reduced each time": (5 * MICRO_BATCHES, 3 * MICRO_BATCHES, 2 * 5),
    # Weights stay gathered for the whole step.
    "stage 2, accumulation": (3 * 5, 3 * 5, 2 * 5),
    "offload": (5 * MICRO_BATCHES, 3 * MICRO_BATCHES, 2 * 5),
}
# Between groups each unit is summed once a step, however often it is reduced inside.
COUNTS_OF_GROUPS = {
    "groups reduced each time": (5 * 15, 3 * 15, (2 + 3) * 5),
    "groups, stage 2": (3 * 5, 3 * 5, (2 + 3) * 5),
}


def said(seen: dict[str, Any]) -> tuple[int, int, int]:
    count = seen["collectives"]
    return count["allgather_base"], count["reduce_scatter_base"], count["allreduce"]


@pytest.mark.parametrize("name", COUNTS)
def test_what_two_ranks_say_to_each_other(two: dict[str, Any], name: str) -> None:
    assert said(two[name]) == COUNTS[name]


@pytest.mark.parametrize("name", COUNTS_OF_GROUPS)
def test_what_four_ranks_say_to_each_other(four: dict[str, Any], name: str) -> None:
    assert said(four[name]) == COUNTS_OF_GROUPS[name]
