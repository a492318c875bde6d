"""Whole decisions over the real ledger: every lever is pulled, wishes are obeyed, less memory is never faster."""

from itertools import pairwise

import pytest
from planner_specs import NVME, spec

from dsgen.errors import RefusedError
from dsgen.facts.constants import constant
from dsgen.planner.job import decide_spec
from dsgen.planner.ranking import ranked
from dsgen.planner.refusal import NothingFitsError
from dsgen.planner.values import Candidate, Decision
from dsgen.spec.values import Method, ModelSizes, Spec
from dsgen.units import GIB


def decide(given: Spec) -> Decision:
    return decide_spec(given).decision


def chosen_at(budgets: list[int], **given: object) -> list[Candidate]:
    """What is chosen while the memory shrinks, as long as anything fits."""
    found: list[Candidate] = []
    for budget in budgets:
        try:
            found.append(decide(spec(budget=budget * GIB, **given)).chosen)  # type: ignore[arg-type]
        except NothingFitsError:
            break
    return found


def test_less_memory_never_gives_a_faster_plan_and_every_kind_of_lever_is_pulled() -> None:
    """Llama-2-7B on 8 cards that shrink, from all to nothing; what is as fast as the fastest counts as equal."""
    budgets = [*range(240, 100, -20), *range(100, 2, -2)]
    chosen = chosen_at(budgets, gpu="b300-288gb-sxm", global_batch=64, nvme=NVME)
    assert len(chosen) < len(budgets)
    slack = 1 + constant("as_fast")
    for more, less in pairwise(chosen):
        if less.plan.sums_apart or not more.plan.sums_apart:  # else exact sums were given up, which took time
            assert ranked(less) <= ranked(more) * slack
    plans = [candidate.plan for candidate in chosen]
    assert len({plan.zero_stage for plan in plans}) > 1
    assert len({plan.checkpointing.kind for plan in plans}) > 1
    assert {plan.offload_optimizer for plan in plans} >= {"none", "cpu"}


def test_the_chosen_is_as_fast_as_the_fastest_and_the_simplest_of_these() -> None:
    decision = decide(spec(global_batch=128, sequence_length=4096))
    speeds = [ranked(candidate) for candidate in decision.alternatives]
    assert speeds == sorted(speeds, reverse=True)
    assert ranked(decision.chosen) * (1 + constant("as_fast")) >= max(speeds)


def test_full_checkpointing_is_reached_by_long_sequences() -> None:
    decision = decide(spec("llama-2-7b", sequence_length=16384, budget=40 * GIB, global_batch=8))
    assert decision.chosen.plan.checkpointing.kind == "full"


def test_nvme_is_reached_when_the_host_is_small_too() -> None:
    decision = decide(spec("llama-2-13b", gpu="rtx-4090", gpus=1, host_memory=64 * GIB, nvme=NVME, global_batch=8))
    assert decision.chosen.plan.offload_optimizer == "nvme"
    assert decision.chosen.plan.zero_stage == 3
    assert any("host memory of a node" in entry.reason for entry in decision.rejected)


@pytest.mark.parametrize("gpus", [1, 2, 8])
@pytest.mark.parametrize("batch", [8, 24, 40])
def test_global_batch_is_met_exactly(gpus: int, batch: int) -> None:
    plan = decide(spec("gpt2", gpus=gpus, global_batch=batch, sequence_length=1024)).chosen.plan
    assert plan.micro_batch * plan.accumulation * gpus == plan.global_batch == batch


def test_the_next_larger_micro_batch_does_not_fit() -> None:
    given = {"global_batch": 1024, "sequence_length": 2048}
    plan = decide(spec(**given)).chosen.plan  # type: ignore[arg-type]
    assert plan.accumulation > 1
    larger = {"micro_batch": 2 * plan.micro_batch, "zero_stage": plan.zero_stage, "checkpointing": "none"}
    with pytest.raises(NothingFitsError):
        decide(spec(want=larger | {"offload_optimizer": "none", "offload_parameters": "none"}, **given))  # type: ignore[arg-type]


def test_max_is_the_most_even_where_less_would_leave_room() -> None:
    fixed = {"zero_stage": 2, "checkpointing": "none", "offload_optimizer": "none"}
    for budget in (60, 66, 72):
        size = decide(spec(want=fixed | {"micro_batch": "max"}, budget=budget * GIB)).chosen.plan.micro_batch
        with pytest.raises(NothingFitsError):
            decide(spec(want=fixed | {"micro_batch": size + 1}, budget=budget * GIB))


def test_max_is_the_most_that_fits() -> None:
    """Without a global batch to divide, any number: one more does not fit."""
    fixed = {"zero_stage": 2, "checkpointing": "none", "offload_optimizer": "none"}
    size = decide(spec(want=fixed | {"micro_batch": "max"})).chosen.plan.micro_batch
    assert size > 1
    with pytest.raises(NothingFitsError):
        decide(spec(want=fixed | {"micro_batch": size + 1}))


@pytest.mark.parametrize(
    "want",
    [
        {"zero_stage": 3},
        {"checkpointing": "full"},
        {"checkpointing": {"every": 4}},
        {"offload_optimizer": "cpu"},
        {"offload_optimizer": "cpu", "offload_parameters": "cpu"},
        {"zero_stage": 3, "offload_optimizer": "nvme"},
        {"micro_batch": 1, "accumulation": 16},
        {"micro_batch": "max"},
        {"precision": "fp32", "zero_stage": 3},
    ],
    ids=str,
)
def test_wishes_are_obeyed(want: dict[str, object]) -> None:
    training = {"precision": want.pop("precision")} if "precision" in want else {}
    plan = decide(spec(want=want, nvme=NVME, global_batch=128, **training)).chosen.plan  # type: ignore[arg-type]
    for key, value in {**want, **training}.items():
        if key == "checkpointing":
            value = f"every {value['every']}" if isinstance(value, dict) else value
            assert str(plan.checkpointing) == value
        elif value != "max":
            assert getattr(plan, key) == value


def test_one_gpu_says_why_it_is_zero_at_all() -> None:
    decision = decide(spec("llama-2-7b", gpus=1, gpu="rtx-4090", global_batch=4))
    assert decision.chosen.plan.world_size == 1
    assert decision.chosen.plan.offload_optimizer != "none"
    assert "DeepSpeed offloads only through ZeRO" in decision.reasons[0]
    small = decide(spec("gpt2", gpus=1, gpu="rtx-4090", global_batch=4, sequence_length=1024))
    assert small.chosen.plan.zero_stage == 0
    assert "nothing to shard" in small.reasons[0]


def test_unknown_places_are_said_not_assumed() -> None:
    decision = decide(spec(gpu="rtx-4090", gpus=2, host_memory=None, global_batch=4))
    assert any("Host memory is not stated" in note for note in decision.notes)
    assert any("Disk space is not stated" in note for note in decision.notes)
    known = decide(spec(gpus=8, global_batch=8, disk=2 * 10**12))
    assert not any("not stated" in note for note in known.notes)


def test_a_checkpoint_that_the_disk_can_not_hold_is_refused() -> None:
    """Llama-2-7B with its Adam states and fp32 weights: 14 bytes a parameter, 94 GB."""
    with pytest.raises(NothingFitsError, match="disk"):
        decide(spec(global_batch=8, disk=50 * GIB))


def test_the_trainer_gets_no_selective_checkpointing() -> None:
    for budget in range(20, 70, 5):
        try:
            decision = decide(spec(budget=budget * GIB, loaded_by="transformers", global_batch=8))
        except NothingFitsError:
            continue
        candidates = (decision.chosen, *decision.alternatives)
        assert "selective" not in {candidate.plan.checkpointing.kind for candidate in candidates}


def test_refusals_name_part_place_and_excess() -> None:
    decision = decide(spec(global_batch=128, sequence_length=4096))
    assert decision.rejected[0].reason.startswith("DDP (ZeRO-0), micro-batch 1 x 16: ")
    for entry in decision.rejected:
        assert entry.candidate is not None
        overflow = entry.candidate.fit.overflows[0]
        assert overflow.largest_part in entry.reason
        assert f"at the {overflow.moment}" in entry.reason
        assert "over by" in entry.reason
    # 8 bytes of moments for each of 6.74e9 parameters: 50.2 GiB
    assert "optimizer_states 50.2 GiB" in decision.rejected[0].reason


def test_lora_needs_no_sharding_where_full_training_does() -> None:
    given = {"gpu": "a100-80gb-sxm", "gpus": 2, "global_batch": 8}
    assert decide(spec(method=Method(type="lora"), **given)).chosen.plan.zero_stage == 0  # type: ignore[arg-type]
    assert decide(spec(**given)).chosen.plan != decide(spec(method=Method(type="lora"), **given)).chosen.plan  # type: ignore[arg-type]


def test_same_spec_same_decision() -> None:
    assert decide(spec(global_batch=128)) == decide(spec(global_batch=128))


# Public report BR-045: 36 layers of 4096, 7.4e9 parameters, ZeRO-2 on 16 cards of 40 GB, unfused attention.
ACTIVATIONS = {
    "model": ModelSizes(layers=36, hidden=4096, heads=32, vocab=32000, mlp="gelu"),
    "gpu": "a100-40gb-sxm",
    "nodes": 2,
    "sequence_length": 1024,
    "attention": "eager",
    "precision": "fp16",
}


def test_activations_that_no_estimator_of_states_sees() -> None:
    want = {"zero_stage": 2, "micro_batch": 4, "checkpointing": "none", "offload_optimizer": "none"}
    with pytest.raises(NothingFitsError) as refused:
        decide_spec(spec(want=want, **ACTIVATIONS))  # type: ignore[arg-type]
    (overflow,) = refused.value.closest.fit.overflows
    assert overflow.largest_part == "activations"
    # the report's own account: 1.24 GB a layer, 45 GB in all, where 40 GB are there
    assert 40e9 < overflow.largest_part_bytes < 60e9
    help = refused.value.problems[0].help or ""
    assert "leave want.checkpointing open" in help
    assert "training.sequence_length" in help


def test_the_changes_that_are_offered_do_help() -> None:
    full = {"zero_stage": 2, "micro_batch": 4, "checkpointing": "full", "offload_optimizer": "none"}
    assert decide(spec(want=full, **ACTIVATIONS)).chosen.fit.fits  # type: ignore[arg-type]
    shorter = ACTIVATIONS | {"sequence_length": 256}
    assert decide(spec(want=full | {"checkpointing": "none"}, **shorter)).chosen.fit.fits  # type: ignore[arg-type]


# Public report BR-084: 13e9 parameters, whole 16-bit weights on cards of 40 GB.
def test_whole_weights_and_sharded_states_do_not_fit_where_stage_3_does() -> None:
    given = {"gpu": "a100-40gb-sxm", "global_batch": 8, "sequence_length": 2048}
    stage_2 = {"zero_stage": 2, "micro_batch": 1, "checkpointing": "full", "offload_optimizer": "none"}
    with pytest.raises(NothingFitsError) as refused:
        decide(spec("llama-2-13b", want=stage_2, **given))  # type: ignore[arg-type]
    assert "leave want.zero_stage open" in (refused.value.problems[0].help or "")
    assert decide(spec("llama-2-13b", want=stage_2 | {"zero_stage": 3}, **given)).chosen.fit.fits  # type: ignore[arg-type]


def test_nothing_fits_offers_more_gpus_and_low_rank() -> None:
    with pytest.raises(NothingFitsError) as refused:
        decide_spec(spec("llama-2-7b", gpu="rtx-4090", gpus=1, host_memory=64 * GIB, global_batch=16))
    help = refused.value.problems[0].help or ""
    assert "training.method {type: lora}" in help
    assert "hardware.host_memory" in help
    assert "hardware.nodes" in help


def test_two_changes_where_one_is_not_enough() -> None:
    with pytest.raises(NothingFitsError) as refused:
        decide_spec(spec("llama-3.1-405b", gpu="a100-80gb-sxm", gpus=1, host_memory=64 * GIB, global_batch=64))
    help = refused.value.problems[0].help or ""
    # 405e9 parameters are 756 GiB in 16 bits: a host of 1 TiB holds them, and LoRA's states are small.
    assert "training.method {type: lora} with hardware.host_memory 1024 GiB" in help


def test_illegal_wish_says_which_rule() -> None:
    with pytest.raises(RefusedError, match="parameter-offload-below-stage-3"):
        decide_spec(spec(want={"zero_stage": 2, "offload_parameters": "cpu"}))
    with pytest.raises(RefusedError, match="nvme-offload-without-path"):
        decide_spec(spec(want={"offload_optimizer": "nvme"}))
    with pytest.raises(RefusedError, match="bf16-without-hardware"):
        decide_spec(spec(gpu="v100-32gb-sxm", precision="bf16"))
