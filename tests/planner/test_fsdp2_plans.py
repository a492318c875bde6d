"""What the planner decides for FSDP2."""

from dataclasses import replace
from typing import Any

import pytest
from planner_specs import spec

from dsgen.errors import RefusedError
from dsgen.plan import Checkpointing, Plan, Wishes
from dsgen.planner.job import Job, decide_spec
from dsgen.planner.ladder import Rung, rungs
from dsgen.spec.values import TargetSpec
from dsgen.units import GIB

NONE = Checkpointing("none")


def job(**given: Any) -> Job:
    asked = spec(**given)
    return decide_spec(replace(asked, target=TargetSpec(format="fsdp2")))


def decided(**given: Any) -> Plan:
    return job(**given).decision.chosen.plan


def test_the_ladder_has_two_stages_and_offloads_everything_or_nothing() -> None:
    for world in (1, 8):
        ladder = list(rungs(Wishes(), world, "fsdp2"))
        once = [rung for rung in ladder if not rung.reduce_each_micro_batch]
        assert once[:2] == [Rung(2, NONE, "none", "none"), Rung(3, NONE, "none", "none")]
        assert ladder[:2] == [once[0], replace(once[0], reduce_each_micro_batch=True)]
        assert {rung.zero_stage for rung in ladder} == {2, 3}
        assert {(rung.offload_optimizer, rung.offload_parameters) for rung in ladder} == {
            ("none", "none"),
            ("cpu", "cpu"),
        }


def test_a_wish_for_half_of_the_offload_takes_the_other_half_along() -> None:
    assert {rung.offload_parameters for rung in rungs(Wishes(offload_optimizer="cpu"), 8, "fsdp2")} == {"cpu"}


@pytest.mark.parametrize(
    ("want", "rule"),
    [
        ({"zero_stage": 1}, "stage-1-in-fsdp2"),
        ({"zero_stage": 0}, "stage-0-in-fsdp2"),
        ({"offload_optimizer": "nvme"}, "nvme-offload-in-fsdp2"),
        ({"offload_optimizer": "cpu", "offload_parameters": "none"}, "offload-of-one-without-the-other-in-fsdp2"),
        ({"shard_group": 3}, "shard-group-that-does-not-divide-the-ranks"),
    ],
)
def test_what_fsdp2_cannot_do_is_refused(want: dict[str, Any], rule: str) -> None:
    with pytest.raises(RefusedError, match=rule):
        decided(want=want)


def test_a_shard_group_is_obeyed_here_and_refused_for_deepspeed() -> None:
    assert decided(want={"shard_group": 4}).shards == 4
    with pytest.raises(RefusedError, match="shard-group-in-deepspeed"):
        decide_spec(spec(want={"shard_group": 4}))


def test_gradients_are_reduced_once_where_they_fit_whole_and_each_time_where_not() -> None:
    """7e9 parameters: whole fp32 gradients are 25 GiB."""
    asked: dict[str, Any] = {"global_batch": 64, "want": {"zero_stage": 3, "micro_batch": 1, "checkpointing": "full"}}
    roomy, tight = job(**asked), job(**asked, budget=40 * GIB)
    assert not roomy.decision.chosen.plan.reduce_each_micro_batch
    assert tight.decision.chosen.plan.reduce_each_micro_batch
    assert any("after the last micro-batch only" in reason for reason in roomy.decision.reasons)
    assert any("after every micro-batch" in reason for reason in tight.decision.reasons)


def test_one_micro_batch_has_nothing_to_defer() -> None:
    assert not decided(global_batch=8, want={"micro_batch": 1}, budget=30 * GIB).reduce_each_micro_batch


def test_less_memory_never_gives_a_simpler_plan() -> None:
    order = list(rungs(Wishes(), 8, "fsdp2"))
    found = []
    for budget in (70, 40, 24, 14):
        plan = decided(global_batch=64, budget=budget * GIB)
        rung = Rung(plan.zero_stage, plan.checkpointing, plan.offload_optimizer, plan.offload_parameters)
        found.append(order.index(rung))
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_the_reasons_speak_of_fsdp2() -> None:
    assert job().decision.reasons[0].startswith("FSDP2, ZeRO stage")
