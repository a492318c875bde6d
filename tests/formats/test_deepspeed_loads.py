"""The real DeepSpeedConfig reads every config of a grid and understands what the plan says."""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from console import environment
from written_plans import BUCKETS, plan, written

from dsgen.formats.values import Written
from dsgen.plan import Plan, ZeroPP
from dsgen.spec.values import Optimizer, Scheduler, Training

LAYOUTS: list[dict[str, Any]] = [
    *({"zero_stage": stage} for stage in range(4)),
    *({"zero_stage": stage, "gradient_precision": "fp32"} for stage in (1, 2, 3)),
    *({"zero_stage": stage, "offload_optimizer": "cpu"} for stage in (1, 2, 3)),
    {"zero_stage": 3, "offload_parameters": "cpu"},
    {"zero_stage": 3, "offload_optimizer": "cpu", "offload_parameters": "cpu"},
    {"zero_stage": 3, "offload_optimizer": "nvme", "offload_parameters": "cpu"},
    {"zero_stage": 3, "offload_optimizer": "nvme", "offload_parameters": "nvme"},
    {"zero_stage": 3, "zeropp": ZeroPP(secondary_partition=8)},
    {"zero_stage": 3, "zeropp": ZeroPP(quantized_weights=True, quantized_gradients=True, secondary_partition=4)},
    *({"zero_stage": stage, "tensor_parallel": 2} for stage in range(4)),
]
TRAININGS = [
    Training(),
    Training(
        optimizer=Optimizer(type="adam", lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1),
        scheduler=Scheduler(type="cosine", warmup_steps=10, total_steps=100, min_lr_ratio=0.1),
        gradient_clipping=0.0,
    ),
    Training(
        optimizer=Optimizer(type="sgd", lr=0.1, momentum=0.9),
        scheduler=Scheduler(type="linear", warmup_steps=10, total_steps=100),
    ),
    Training(scheduler=Scheduler(type="constant", warmup_steps=5, total_steps=50)),
]
LOADERS = ("deepspeed", "transformers")


@dataclass(frozen=True)
class Job:
    plan: Plan
    training: Training
    loader: str
    written: Written

    def request(self, folder: Path) -> dict[str, Any]:
        arguments = None
        if self.loader == "transformers":
            flags = [item.pass_as for item in self.written.not_carried if item.pass_as.startswith("--")]
            arguments = [*shlex.split(" ".join(flags)), "--output_dir", str(folder), "--use_cpu", "true"]
        config = json.loads(self.written.files["ds_config.json"])
        return {"config": config, "arguments": arguments, "world_size": self.plan.world_size}


def jobs() -> list[Job]:
    grid = product(LAYOUTS, ("bf16", "fp16", "fp32"), LOADERS)
    found = []
    for number, (layout, precision, loader) in enumerate(grid):
        zeropp = layout.get("zeropp", ZeroPP())
        if "tensor_parallel" in layout and loader != "transformers":
            continue  # the Trainer alone splits matrices
        if precision == "fp32" and (zeropp.quantized_weights or zeropp.quantized_gradients):
            continue  # only 16 bits are quantized
        # The trainings rotate: each meets every stage, precision and loader.
        training = TRAININGS[(number + number // 6) % len(TRAININGS)]
        fields: dict[str, Any] = {**layout, "precision": precision, "accumulation": 1 + number % 3}
        made = written(loaded_by=loader, training=training, **fields)  # type: ignore[arg-type]
        found.append(Job(plan(**fields), training, loader, made))
    return found


JOBS = jobs()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("grid")
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("load_grid.py")],
        input=json.dumps([job.request(folder) for job in JOBS]),
        env=environment(DS_ACCELERATOR="cpu", ACCELERATE_USE_DEEPSPEED="true"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    assert len(found) == len(JOBS)
    return found


@pytest.mark.parametrize("number", range(len(JOBS)))
def test_deepspeed_understands_the_plan(number: int, answers: list[dict[str, Any]]) -> None:
    job, read = JOBS[number], answers[number]
    chosen, training = job.plan, job.training
    # The parser knows no tensor-parallel ranks: it counts each as if it had data of its own.
    counted = chosen.global_batch * chosen.tensor_parallel
    assert read["batch"] == [chosen.micro_batch, chosen.accumulation, counted]
    assert read["split"] == (chosen.tensor_parallel if chosen.tensor_parallel > 1 else 0)
    zeropp = chosen.zeropp
    assert read["zeropp"] == [zeropp.secondary_partition, zeropp.quantized_weights, zeropp.quantized_gradients]
    assert read["saves_whole"] == (chosen.zero_stage == 3 or chosen.tensor_parallel > 1)
    assert read["precision"] == chosen.precision
    assert read["clipping"] == training.gradient_clipping
    assert read["stage"] == chosen.zero_stage
    assert read["optimizer_device"] == chosen.offload_optimizer
    assert read["parameter_device"] == chosen.offload_parameters
    if chosen.precision == "fp16":
        assert read["dynamic_loss_scale"]
    if chosen.precision != "fp32" and chosen.accumulation > 1:
        assert read["sums"] == (chosen.gradient_precision or chosen.precision)
    if chosen.zero_stage > 0 and not chosen.has_bf16_optimizer:
        assert read["reduce"] == BUCKETS.reduce
    if chosen.zero_stage == 3:
        assert (read["prefetch"], read["persistence"], read["live"]) == (
            BUCKETS.prefetch,
            BUCKETS.persistence_threshold,
            BUCKETS.max_live_parameters,
        )
    _, parameters = read["optimizer"]
    assert parameters["lr"] == training.optimizer.lr
    assert parameters["weight_decay"] == training.optimizer.weight_decay
    if training.optimizer.type != "sgd":
        assert parameters["betas"] == list(training.optimizer.betas)
    if training.scheduler is not None:
        _, schedule = read["scheduler"]
        assert schedule["warmup_num_steps"] == training.scheduler.warmup_steps
        if training.scheduler.type != "constant":
            assert schedule["total_num_steps"] == training.scheduler.total_steps
        if training.scheduler.type != "cosine":
            assert schedule["warmup_max_lr"] == training.optimizer.lr
