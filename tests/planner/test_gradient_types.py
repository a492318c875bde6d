"""In which type gradients add up, and what is given up for it."""

from dataclasses import replace
from typing import Any

import pytest
from planner_specs import spec

from dsgen.plan import Plan
from dsgen.planner.job import decide_spec
from dsgen.planner.values import Decision
from dsgen.spec.values import Method, TargetSpec
from dsgen.units import GIB


def decide(**given: Any) -> Decision:
    return decide_spec(spec(**given)).decision


def said(decision: Decision) -> str:
    (sentence,) = [reason for reason in decision.reasons if reason.startswith("Gradients of")]
    return sentence


def chosen(want: dict[str, Any], **given: Any) -> Plan:
    return decide(want=want, **given).chosen.plan


@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_sharded_sums_are_fp32(stage: int, precision: str) -> None:
    decision = decide(want={"zero_stage": stage, "micro_batch": 1, "accumulation": 2}, precision=precision)
    assert decision.chosen.plan.gradient_precision == "fp32"
    assert decision.chosen.plan.overlaps
    bits = {"bf16": 8, "fp16": 11}[precision]
    assert said(decision) == f"Gradients of 2 micro-batches add up in fp32: a sum in {precision} keeps {bits} bits."


@pytest.mark.parametrize(("accumulation", "type"), [(1, None), (2, None), (31, None), (32, "fp32"), (64, "fp32")])
def test_whole_sums_are_fp32_where_too_many_add_up(accumulation: int, type: str | None) -> None:
    plan = chosen({"zero_stage": 1, "micro_batch": 1, "accumulation": accumulation}, model="gpt2", sequence_length=1024)
    assert plan.gradient_precision == type
    # BF16_Optimizer reduces after the backward pass.
    assert plan.overlap_comm is (type is None)


def test_one_micro_batch_and_fp32_have_nothing_to_lose() -> None:
    want = {"zero_stage": 2, "micro_batch": 1}
    for decision in (
        decide(want=want | {"accumulation": 1}),
        decide(model="gpt2", sequence_length=1024, want=want | {"accumulation": 64}, precision="fp32"),
    ):
        assert decision.chosen.plan.gradient_precision is None
        assert not [reason for reason in decision.reasons if reason.startswith("Gradients of")]


def test_few_add_up_in_the_compute_type_at_stage_1_which_is_said() -> None:
    decision = decide(want={"zero_stage": 1, "micro_batch": 1, "accumulation": 16})
    assert "add up in bf16, which keeps 8 bits" in said(decision)
    assert "which fewer than 32 do not need" in said(decision)


def test_the_compute_type_is_taken_where_only_that_fits() -> None:
    """Stage 3 keeps 2 T / N bytes more in fp32, 1.57 GiB for 6.74e9 parameters on 8 GPUs."""
    want = {"zero_stage": 3, "checkpointing": "full", "offload_optimizer": "none", "micro_batch": 1, "accumulation": 2}
    roomy = decide(want=want)
    peak = roomy.chosen.ledger.device.high
    tight = decide(want=want, budget=peak - GIB // 2)
    assert roomy.chosen.plan.gradient_precision == "fp32"
    assert tight.chosen.plan.gradient_precision is None
    assert said(tight).endswith("which keeps 8 bits: in fp32 they do not fit.")


def test_stages_that_add_up_too_many_in_16_bits_are_passed_over() -> None:
    """GPT-2 fits everywhere; stage 0 can't add up in fp32, and stage 1 does so whole."""
    decision = decide(model="gpt2", sequence_length=1024, want={"micro_batch": 1, "accumulation": 64})
    assert decision.chosen.plan.zero_stage == 1
    assert decision.chosen.plan.gradient_precision == "fp32"
    assert "gradients of 64 micro-batches would add up in bf16" in decision.rejected[0].reason
    few = decide(model="gpt2", sequence_length=1024, want={"micro_batch": 1, "accumulation": 16})
    assert few.chosen.plan.zero_stage == 0
    assert "zero_stage 2 adds them up in fp32" in said(few)


def test_one_gpu_takes_stage_2_for_it() -> None:
    given: dict[str, Any] = {"model": "gpt2", "sequence_length": 1024, "gpus": 1}
    plan = chosen({"micro_batch": 1, "accumulation": 64}, **given)
    assert (plan.zero_stage, plan.gradient_precision, plan.offload_optimizer) == (2, "fp32", "none")
    assert chosen({"micro_batch": 1, "accumulation": 16}, **given).zero_stage == 0


def test_a_wished_stage_0_is_obeyed_and_the_loss_said() -> None:
    decision = decide(model="gpt2", sequence_length=1024, want={"zero_stage": 0, "micro_batch": 1, "accumulation": 64})
    assert decision.chosen.plan.zero_stage == 0
    assert "add up in bf16, which keeps 8 bits: at ZeRO stage 0" in said(decision)
    assert all("would add up" not in entry.reason for entry in decision.rejected)


def test_versions_that_ignore_it_are_not_given_it() -> None:
    job = spec(want={"zero_stage": 2, "micro_batch": 1, "accumulation": 2}, method=Method(type="lora"))
    old = replace(job, target=TargetSpec(loaded_by="deepspeed", versions={"deepspeed": "0.19.7"}))
    decision = decide_spec(old).decision
    assert decision.chosen.plan.gradient_precision is None
    assert "before 0.19.8" in said(decision)
    assert decide_spec(job).decision.chosen.plan.gradient_precision == "fp32"


def test_fsdp2_always_adds_up_in_fp32() -> None:
    for budget in (76, 45):
        job = spec(want={"micro_batch": 1, "accumulation": 4, "zero_stage": 3}, budget=budget * GIB)
        decision = decide_spec(replace(job, target=TargetSpec(format="fsdp2", loaded_by="deepspeed"))).decision
        assert decision.chosen.plan.gradient_precision == "fp32"
        assert "add up in fp32" in said(decision)


def test_a_smaller_micro_batch_taken_for_room_adds_up_exactly_too() -> None:
    """One micro-batch has nothing to add up; cut in two for room to spare, it has."""
    for budget in range(60, 140, 4):
        for format in ("deepspeed", "fsdp2"):
            job = spec(budget=budget * GIB, gpu="h200", global_batch=48)
            plan = decide_spec(replace(job, target=TargetSpec(format=format))).decision.chosen.plan
            if plan.accumulation > 1 and (format == "fsdp2" or plan.zero_stage >= 2):
                assert plan.gradient_precision == "fp32"
