"""FSDP2 code read back: every layout that is written returns as the same plan; code of others as far as it goes."""

import itertools
from typing import Any

import pytest
from formats.fsdp2.fsdp2_folders import plan, shapes, written

from dsgen.errors import InputError
from dsgen.formats.fsdp2.read import read
from dsgen.formats.values import Written
from dsgen.plan import Checkpointing, obeyed
from dsgen.reading import Reading
from dsgen.spec.values import Optimizer, Scheduler

LAYOUTS: list[dict[str, Any]] = [
    {"zero_stage": 3},
    {"zero_stage": 2},
    {"zero_stage": 3, "shard_group": 4},
    {"zero_stage": 3, "offload_optimizer": "cpu", "offload_parameters": "cpu"},
]
KINDS = [Checkpointing("none"), Checkpointing("full"), Checkpointing("selective"), Checkpointing("every", 3)]
PRECISIONS = ["bf16", "fp16", "fp32"]
GRID = list(itertools.product(LAYOUTS, KINDS, PRECISIONS))


def reading(made: Written) -> Reading:
    return read({name: text for name, text in made.files.items() if name in ("sharding.py", "train.py")})


@pytest.mark.parametrize(("layout", "kind", "precision"), GRID)
def test_what_is_written_reads_back_as_the_same_plan(
    layout: dict[str, Any], kind: Checkpointing, precision: str
) -> None:
    sums = "fp32" if precision != "fp32" else None
    wanted = {**layout, "checkpointing": kind, "precision": precision, "micro_batch": 3, "accumulation": 5}
    made = written(8, **wanted, gradient_precision=sums)
    model = shapes()
    other = plan(model, 8, zero_stage=0, accumulation=1, micro_batch=1)
    assert obeyed(other, reading(made).wishes) == plan(model, 8, **wanted, gradient_precision=sums)


@pytest.mark.parametrize(
    "scheduler",
    [
        Scheduler(type="cosine", warmup_steps=7, total_steps=99, min_lr_ratio=0.2),
        Scheduler(type="linear", warmup_steps=7, total_steps=99, min_lr_ratio=0.2),
        Scheduler(type="constant", warmup_steps=7),
    ],
)
def test_the_training_reads_back(scheduler: Scheduler) -> None:
    optimizer = Optimizer(type="adamw", lr=3e-4, betas=(0.8, 0.95), eps=1e-7, weight_decay=0.05)
    found = reading(written(8, optimizer=optimizer, scheduler=scheduler, clipping=0.3, sequence_length=512))
    section = ("training", "optimizer")
    assert found.get(*section, "type") == "adamw"
    assert [found.get(*section, key) for key in ("lr", "eps", "weight_decay")] == [3e-4, 1e-7, 0.05]
    assert found.get(*section, "betas") == [0.8, 0.95]
    assert found.get("training", "gradient_clipping") == 0.3
    assert found.get("training", "sequence_length") == 512
    assert found.get("training", "scheduler", "type") == scheduler.type
    assert found.get("training", "scheduler", "warmup_steps") == 7


def test_code_of_others_is_read_as_far_as_it_is_written_out() -> None:
    text = (
        "import torch\n"
        "from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy, CPUOffloadPolicy\n"
        "policy = MixedPrecisionPolicy(torch.bfloat16) if fast else None\n"
        "for layer in model.layers:\n"
        "    fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16), reshard_after_forward=4)\n"
        "fully_shard(model, offload_policy=CPUOffloadPolicy() )\n"
        "MICRO_BATCH = int(sys.argv[1])\n"
    )
    found = read({"train.py": text})
    assert found.wishes.zero_stage == 3
    assert found.wishes.precision == "bf16"
    assert found.wishes.gradient_precision == "bf16"  # reduce_dtype is param_dtype where it is not given
    assert found.wishes.offload_parameters == "cpu"
    assert found.wishes.micro_batch is None
    assert [left.key for left in found.not_carried] == ["reshard_after_forward"]


@pytest.mark.parametrize("text", ["", "print(1)", "def f(:", "\x00", "(" * 3000, "fully_shard = 1"])
def test_what_shards_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read({"train.py": text})
