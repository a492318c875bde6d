"""What a plan says to someone who has to decide."""

from dataclasses import replace
from typing import Any

import pytest
from planner_specs import spec

from dsgen.errors import RefusedError
from dsgen.plan import Plan
from dsgen.planner.job import decide_spec
from dsgen.planner.levers import breakdown
from dsgen.planner.refusal import NothingFitsError
from dsgen.planner.values import Decision
from dsgen.spec.values import TargetSpec
from dsgen.target import Format
from dsgen.units import GIB

# Public report BR-084: 13e9 parameters, all 16-bit weights whole from forward to backward pass, cards of 40 GB.
BR_084: dict[str, Any] = {"model": "llama-2-13b", "gpu": "a100-40gb-sxm", "global_batch": 8, "sequence_length": 2048}


def decide(format: Format = "deepspeed", **given: Any) -> Decision:
    return decide_spec(replace(spec(**given), target=TargetSpec(format=format))).decision


def refused(format: Format = "deepspeed", **given: Any) -> tuple[str, ...]:
    with pytest.raises(NothingFitsError) as error:
        decide(format, **given)
    return breakdown(error.value.closest, format)


def test_each_part_answers_to_its_lever() -> None:
    at_0 = refused(want={"zero_stage": 0, "checkpointing": "full"}, budget=40 * GIB)
    assert any(line.startswith("Optimizer states: ") and line.endswith("answers to ZeRO-1.") for line in at_0)
    long = refused(want={"zero_stage": 2, "checkpointing": "none"}, budget=30 * GIB, sequence_length=8192)
    assert long[0].startswith("Activations: ")
    assert "answers to checkpointing, a smaller micro-batch with more accumulation" in long[0]


def test_gathered_weights_answer_to_stage_3() -> None:
    lines = refused("fsdp2", want={"zero_stage": 2, "checkpointing": "full", "offload_optimizer": "none"}, **BR_084)
    assert lines[0].startswith("Gathered parameters: 2")
    assert lines[0].endswith("answers to ZeRO-3, which gathers weights layer by layer.")
    full = {"zero_stage": 3, "micro_batch": 1, "checkpointing": "full", "offload_optimizer": "none"}
    assert decide("fsdp2", want=full, **BR_084).chosen.fit.fits


def test_the_stage_below_is_said_to_overflow_by_how_much() -> None:
    decision = decide(global_batch=128, sequence_length=4096)
    (stage,) = [reason for reason in decision.reasons if reason.startswith("ZeRO stage 1")]
    assert "Stage 0 overflows by " in stage
    assert "most of it optimizer states (50.2 GiB), which answers to ZeRO-1" in stage


def test_the_runner_up_has_its_price() -> None:
    decision = decide(global_batch=128, sequence_length=4096)
    second = decision.alternatives[0]
    (said,) = [reason for reason in decision.reasons if reason.startswith("The runner-up")]
    assert f"{second.speed:,.0f} tokens/s a GPU" in said
    change = (1 - second.speed / decision.chosen.speed) * 100
    assert ("slower" in said) == (change >= 0.05)


def test_recomputation_is_priced_and_what_it_spares_is_said() -> None:
    decision = decide(sequence_length=16384, budget=40 * GIB, global_batch=8)
    (said,) = [reason for reason in decision.reasons if reason.startswith("Checkpointing full")]
    parts = decision.chosen.time.parts
    assert f"full: {parts['recomputation'] / decision.chosen.time.seconds * 100:.0f} % of the step" in said
    assert "Without it, " in said


def test_a_slower_simpler_plan_that_fits_is_said_to_fit() -> None:
    """Every plan below the chosen one either overflows, is illegal, or is slower, and says which."""
    for budget in (78, 60, 45):
        decision = decide(global_batch=64, budget=budget * GIB)
        for entry in decision.rejected:
            overflows = "over by" in entry.reason
            fits = "fits, but" in entry.reason or "fits with little to spare" in entry.reason
            assert overflows or fits or "[" in entry.reason or "would add up" in entry.reason


def plan(**given: Any) -> Plan:
    return decide_spec(replace(spec(**given), target=TargetSpec(loaded_by="transformers"))).decision.chosen.plan


def test_what_needs_more_than_data_parallelism_is_taken_only_where_it_pays() -> None:
    """The same job: short sequences are not split; those that fit no card whole are."""
    short: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100-80gb-sxm", "attention": "flash", "global_batch": 32}
    assert (plan(**short).tensor_parallel, plan(**short).ulysses) == (1, 1)
    want = {"offload_optimizer": "none", "offload_parameters": "none"}
    long = plan(**short | {"sequence_length": 65536, "want": want})
    assert long.tensor_parallel * long.ulysses > 1
    assert long.data_parallel * long.tensor_parallel * long.ulysses == 8


def test_a_batch_smaller_than_the_gpus_needs_ranks_that_share_sequences() -> None:
    chosen = plan(model="llama-3.1-8b", gpu="h100-80gb-sxm", attention="flash", global_batch=2)
    assert chosen.global_batch == 2
    assert chosen.data_parallel <= 2


def test_wishes_for_split_ranks_are_obeyed() -> None:
    assert plan(want={"tensor_parallel": 4}, global_batch=16).tensor_parallel == 4
    assert plan(want={"ulysses": 2}, global_batch=16).ulysses == 2
    wished = plan(want={"zero_stage": 3, "zeropp": {"secondary_partition": 8}}, nodes=2, global_batch=16)
    assert wished.zeropp.secondary_partition == 8
    assert not wished.zeropp.quantized_weights


def test_nothing_is_quantized_unasked() -> None:
    for nodes in (1, 4):
        chosen = plan(model="llama-3.1-70b", gpu="h200", nodes=nodes, global_batch=64)
        assert not chosen.zeropp.quantized_weights
        assert not chosen.zeropp.quantized_gradients


def test_the_trainer_is_offered_where_splitting_sequences_helps() -> None:
    given: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100-80gb-sxm", "attention": "flash", "global_batch": 8}
    want = {"offload_optimizer": "none", "offload_parameters": "none"}
    with pytest.raises(NothingFitsError) as error:
        decide(sequence_length=65536, want=want, **given)
    help = error.value.problems[0].help or ""
    assert "target.loaded_by transformers (ZeRO-" in help
    assert "Ulysses" in help


def test_a_budget_below_the_card_is_what_to_give_up_first() -> None:
    with pytest.raises(NothingFitsError) as error:
        decide(budget=20 * GIB, global_batch=8, want={"zero_stage": 1, "checkpointing": "none"})
    assert "leave memory_budget out (ZeRO-1" in (error.value.problems[0].help or "")


def test_a_wished_shard_group_is_not_met_by_splitting_the_model() -> None:
    """On four GPUs the ranks beside two tensor-parallel ones are two; that is not what was asked for."""
    given: dict[str, Any] = {"gpu": "v100-16gb-sxm", "gpus": 4, "global_batch": 96, "sequence_length": 128}
    with pytest.raises(RefusedError, match="shard-group-in-deepspeed"):
        plan(want={"checkpointing": "none", "shard_group": 2}, **given)


def test_split_ranks_that_do_not_fit_are_weighed_with_the_checkpointing_that_is_wished() -> None:
    with pytest.raises(NothingFitsError):
        plan(want={"checkpointing": "none", "tensor_parallel": 2}, gpu="t4", gpus=2, global_batch=8, host_memory=None)
