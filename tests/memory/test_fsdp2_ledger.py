"""FSDP2's ledger against arithmetic, against real FSDP2 code under torch's FakeTensorMode, and against a measured run.

SIMULATED was got by running fully_shard of torch 2.13 on fake tensors, one rank of the world named, two steps: foreach
AdamW, composite RMSNorm, logits and loss in fp32; GiB of live tensors. Nothing in dsgen was fitted to it.
"""

import csv
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worlds import GIB, LLAMA_2_7B, LLAMA_3_8B, hardware, plan, shapes_of

from dsgen.memory.account import account
from dsgen.memory.fsdp2.units import unit
from dsgen.memory.ledger import Ledger, Moment
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Architecture, Block, Shapes, Tensor
from dsgen.spec.values import Optimizer, Training
from dsgen.target import Target

FSDP2 = Target(format="fsdp2")
SHARED = os.environ.get("DSGEN_SHARED")
EVERYTHING_OFF = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}


def ledger(arch: Architecture = LLAMA_3_8B, *, s: int = 4096, optimizer: str = "adamw", **changes: Any) -> Ledger:
    training = Training(attention="flash", optimizer=Optimizer(type=optimizer, weight_decay=0.1))
    return account(plan(**changes), shapes_of(arch, training), training, s, hardware(), FSDP2)


def tensors(moment: Moment) -> int:
    return moment.total - moment.parts["framework"]


def peak(found: Ledger) -> float:
    return max(map(tensors, found.device.moments)) / GIB


def step(found: Ledger) -> dict[str, int]:
    return {name: size for name, size in found.device.moments[-1].parts.items() if name != "framework"}


@pytest.mark.parametrize(
    ("group", "weights", "gradients", "states"), [(None, 3.739, 3.739, 7.479), (4, 7.479, 7.479, 14.958)]
)
def test_states_are_fp32_shards(group: int | None, weights: float, gradients: float, states: float) -> None:
    """8.03e9 parameters on 8 GPUs: 4, 4 and 8 bytes each, divided by the ranks of a shard group. As simulated."""
    parts = step(ledger(shard_group=group))
    assert parts["parameters"] / GIB == pytest.approx(weights, abs=5e-4)
    assert parts["gradients"] / GIB == pytest.approx(gradients, abs=5e-4)
    assert parts["optimizer_states"] / GIB == pytest.approx(states, abs=1e-3)
    assert set(parts) == {"parameters", "gradients", "optimizer_states"}


@pytest.mark.parametrize(("ranks", "weights"), [(8, 3.739), (128, 0.234)])
def test_shards_as_simulated(ranks: int, weights: float) -> None:
    assert step(ledger(world_size=ranks))["parameters"] / GIB == pytest.approx(weights, abs=5e-4)


# what: changes, GiB at the peak, tolerance. Norms save fp32 copies there and are fused here, hence "none".
SIMULATED: dict[str, tuple[dict[str, Any], float, float]] = {
    "full": ({}, 20.34, 0.02),
    "none": ({"checkpointing": Checkpointing("none")}, 45.70, 0.10),
    "stage 2": ({"zero_stage": 2}, 33.234, 0.02),
    "accumulation, reduced once": ({"accumulation": 2}, 48.598, 0.05),
}


@pytest.mark.parametrize("what", SIMULATED)
def test_peaks_as_simulated(what: str) -> None:
    changes, simulated, tolerance = SIMULATED[what]
    assert peak(ledger(**changes)) == pytest.approx(simulated, rel=tolerance)


def test_stage_2_keeps_all_weights_over_the_turn() -> None:
    stays, goes = ledger(zero_stage=2).device.moments[0].parts, ledger().device.moments[0].parts
    blocks = 32 * (4096 * (4096 * 2 + 1024 * 2 + 3 * 14336) + 2 * 4096)
    assert stays["gathered_parameters"] - goes["gathered_parameters"] == 2 * blocks
    assert step(ledger(zero_stage=2)) == step(ledger())


def test_whole_gradients_between_micro_batches() -> None:
    """Reduced once a step they are kept whole in fp32; reduced each time, as shards."""
    once = ledger(accumulation=2).device.moments[0].parts["gradients"]
    each = ledger(accumulation=2, reduce_each_micro_batch=True).device.moments[0].parts["gradients"]
    assert once == 4 * 8_030_261_248
    assert each == once / 8
    assert "gradients" not in ledger().device.moments[0].parts


def test_offload_leaves_nothing_of_the_states_on_the_gpu() -> None:
    found = ledger(**EVERYTHING_OFF)
    assert step(found) == {}
    backward = found.device.moments[1].parts
    assert not {"parameters", "optimizer_states"} & set(backward)
    assert peak(found) < peak(ledger()) - 10
    # Shards and gradients are page-locked tensor by tensor, so up to twice 4 bytes; Adam's states are not.
    host = found.host_per_node
    whole = 4 * 8_030_261_248
    assert host["optimizer states"] == pytest.approx(2 * whole, rel=1e-4)
    assert whole <= host["parameters"] <= 2 * whole
    assert host["parameters"] == host["gradients"]


def test_offload_keeps_gradients_that_are_not_reduced_on_the_gpu() -> None:
    parts = ledger(**EVERYTHING_OFF, accumulation=2).device.moments[0].parts
    assert parts["gradients"] == 4 * 8_030_261_248


def test_uneven_tensors_are_padded_to_whole_rows() -> None:
    found = unit((Tensor("w", (10, 7)), Tensor("frozen", (3,), trainable=False)), 4)
    assert (found.shard, found.trainable_shard) == (3 * 7 + 1, 3 * 7)
    assert (found.whole, found.trainable) == (4 * 22, 4 * 21)


def test_frozen_weights_are_sharded_and_gathered_but_never_reduced() -> None:
    frozen = Tensor("w", (8000, 8), trainable=False)
    shapes = Shapes("lora", replace(LLAMA_2_7B, layers=1), (Block((frozen, Tensor("a", (80, 8)))),), ())
    parts = step(account(plan(), shapes, Training(), 1, hardware(), FSDP2))
    assert parts == {"parameters": 2 * 8000 + 4 * 80, "gradients": 4 * 80, "optimizer_states": 8 * 80}
    # Before torch 2.8 all parameters of a unit had to have one type.
    older = replace(FSDP2, versions={"torch": "2.7"})
    assert step(account(plan(), shapes, Training(), 1, hardware(), older))["parameters"] == 4 * 8080


def test_sgd_copies_gradients_to_decay_them_and_fused_adam_does_not() -> None:
    parts = step(ledger(optimizer="sgd"))
    assert parts["temporaries"] == parts["gradients"]
    assert "temporaries" not in step(ledger())


def test_one_gpu_copies_what_it_computes_with() -> None:
    alone = ledger(world_size=1)
    assert step(alone)["parameters"] == 4 * 8_030_261_248
    assert alone.device.moments[0].parts["gathered_parameters"] > 0


def test_a_checkpoint_holds_fp32_weights_and_states() -> None:
    assert ledger().disk == {"weights": 4 * 8_030_261_248, "optimizer states": 8 * 8_030_261_248}


def test_the_decoder_is_made_on_the_gpu_and_a_class_of_transformers_by_rank_0() -> None:
    training = Training(attention="flash")
    shapes = shapes_of(LLAMA_3_8B, training)
    by_trainer = Target(format="fsdp2", loaded_by="transformers")
    assert "weights while loading" not in ledger().host_per_node
    found = account(plan(), shapes, training, 4096, hardware(), by_trainer).host_per_node
    assert found["weights while loading"] == 4 * shapes.parameters


@pytest.mark.parametrize("world", [1, 2, 8, 64])
@pytest.mark.parametrize("stage", [2, 3])
def test_no_part_is_negative_and_more_sequences_take_more(world: int, stage: int) -> None:
    sizes = [
        ledger(world_size=world, zero_stage=stage, micro_batch=size, accumulation=2, reduce_each_micro_batch=True)
        for size in (1, 2, 8)
    ]
    for found in sizes:
        assert all(size >= 0 for moment in found.device.moments for size in moment.parts.values())
    assert [peak(found) for found in sizes] == sorted(peak(found) for found in sizes)


def _comparable(row: dict[str, str]) -> bool:
    return row["sharding"] == "fsdp2_full" and row["kind"] == "pretrain" and row["peak_alloc_gib"] != ""


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED does not name a folder with measurements/measured.csv")
def test_the_measured_run() -> None:
    """The one public pre-training run of FSDP2 with a figure of allocated memory: early torchtitan, which held the last
    logits through the backward pass (c V bytes a token; the generated loop does not)."""
    with open(Path(SHARED or "") / "measurements" / "measured.csv", encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if _comparable(row)]
    assert (row["row_id"], row["model"], row["n_gpus"], row["act_ckpt"]) == ("m0014", "Llama-2-7B", "8", "full")
    found = ledger(LLAMA_2_7B, s=int(row["seq_len"]), micro_batch=int(row["micro_batch"]))
    held = 2 * 32000 * int(row["seq_len"]) * int(row["micro_batch"]) / GIB
    measured = float(row["peak_alloc_gib"])
    print(f"measured {measured}, predicted {peak(found):.2f}, with held logits {peak(found) + held:.2f} GiB")  # noqa: T201
    assert peak(found) == pytest.approx(measured, rel=0.15)
    assert peak(found) + held == pytest.approx(measured, rel=0.08)


@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.parametrize("sequence", [512, 16384])
def test_each_figure_contains_the_one_before(stage: int, sequence: int) -> None:
    """nvidia-smi shows what the allocator holds and more, and the allocator holds what is allocated and more."""
    device = ledger(s=sequence, zero_stage=stage).device
    assert device.allocated < device.reserved < device.whole_gpu
    assert device.peak <= device.whole_gpu


def test_weights_outlast_all_backward_passes_but_the_last() -> None:
    """Stage 2 gathers once a step. With 16 tokens the fullest moment is the root's reduction, for which embedding and
    head take 4 bytes an element: with one micro-batch the blocks are sharded by then, with two they are not."""

    def gathered(accumulation: int) -> int:
        found = ledger(
            s=16,
            zero_stage=2,
            micro_batch=1,
            accumulation=accumulation,
            reduce_each_micro_batch=True,
            checkpointing=Checkpointing("full"),
        )
        return found.device.peak_moment.parts.get("gathered_parameters", 0)

    whole = shapes_of(LLAMA_3_8B, Training()).parameters
    assert gathered(2) == 2 * whole
    assert gathered(1) < 2 * whole
