"""The layers that the ledger looks at are those at which memory is largest, so looking at all changes no figure."""

from dataclasses import replace
from typing import Any

import pytest
from worlds import BUCKETS, LLAMA_3_8B, hardware, plan, shapes_of

from dsgen.memory import backward
from dsgen.memory.account import account
from dsgen.memory.fsdp1 import moments as fsdp1
from dsgen.memory.fsdp2 import backward as fsdp2
from dsgen.memory.layers import turning_points
from dsgen.memory.plain import moments as plain
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Architecture, Moe, Shapes
from dsgen.spec.values import Code, Method, Training
from dsgen.target import Format, Target

LAYERS = 9
DENSE = replace(LLAMA_3_8B, layers=LAYERS, vocab=1000)
# Three dense layers, then mixtures; and every other layer a mixture.
FIRST_DENSE = replace(DENSE, moe=Moe(experts=8, top_k=2, intermediate=4096, first_dense_layers=3))
EVERY_OTHER = replace(DENSE, moe=Moe(experts=8, top_k=2, intermediate=4096, layer_step=2))
LAYOUTS: list[tuple[Format, int]] = [
    ("deepspeed", 0),
    ("deepspeed", 1),
    ("deepspeed", 2),
    ("deepspeed", 3),
    ("fsdp2", 2),
    ("fsdp2", 3),
    ("fsdp1", 2),
    ("fsdp1", 3),
    ("ddp", 0),
]
CHANGES: list[dict[str, Any]] = [
    {},
    {"accumulation": 4},
    {"accumulation": 4, "reduce_each_micro_batch": True, "overlap_comm": True, "gradient_precision": "fp32"},
    {"offload_optimizer": "cpu"},
    # What is kept over the turn ends between two layers; what is fetched ahead is bounded in another.
    {"buckets": replace(BUCKETS, max_reuse_distance=10**9, max_live_parameters=5 * 10**8, prefetch=10**8)},
]


@pytest.mark.parametrize("arch", [DENSE, FIRST_DENSE, EVERY_OTHER], ids=["dense", "first dense", "every other"])
@pytest.mark.parametrize(("form", "stage"), LAYOUTS)
def test_no_other_layer_is_larger(
    monkeypatch: pytest.MonkeyPatch, arch: Architecture, form: Format, stage: int
) -> None:
    trainings = [
        Training(),
        Training(attention="eager", method=Method(type="lora"), code=Code(library="litgpt", reentrant=True)),
    ]

    def every_layer(shapes: Shapes, alike: bool) -> tuple[int, ...]:
        return turning_points(shapes, alike=False)

    for training in trainings:
        shapes = shapes_of(arch, training)
        for kind in (Checkpointing("none"), Checkpointing("full"), Checkpointing("every", 2)):
            for change in CHANGES:
                one = plan(zero_stage=stage, checkpointing=kind, **change)
                few = account(one, shapes, training, 4096, hardware(), Target(format=form)).device
                with monkeypatch.context() as patch:
                    for module in (backward, fsdp1, fsdp2, plain):
                        patch.setattr(module, "turning_points", every_layer)
                    every = account(one, shapes, training, 4096, hardware(), Target(format=form)).device
                assert few == every


def test_of_equal_layers_few_are_looked_at() -> None:
    shapes = shapes_of(replace(DENSE, layers=126))
    assert turning_points(shapes, alike=True) == (125, 124, 1, 0)
    assert len(turning_points(shapes, alike=False)) == 126
