"""The climb, with a ledger made up for the purpose."""

from dataclasses import replace

import pytest

from dsgen.legality.values import Row
from dsgen.memory.ledger import DeviceAccount, Fit, Ledger, Moment, Overflow, StatesClassic
from dsgen.plan import Buckets, Checkpointing, Plan, Wishes
from dsgen.planner.ladder import Rung, rungs
from dsgen.planner.micro_batch import Split
from dsgen.planner.refusal import IllegalPlanError, NothingFitsError
from dsgen.planner.search import RUNNERS_UP, Found, climb
from dsgen.planner.values import Candidate

SPLITS = (Split(1, 8), Split(2, 4), Split(4, 2), Split(8, 1))
BUCKETS = Buckets(
    reduce=2,
    allgather=2,
    prefetch=1,
    max_live_parameters=2,
    max_reuse_distance=2,
    persistence_threshold=1,
    sub_group_size=1,
)
PLAN = Plan(
    world_size=4,
    gpus_per_node=4,
    zero_stage=0,
    precision="bf16",
    checkpointing=Checkpointing(),
    micro_batch=1,
    accumulation=1,
    buckets=BUCKETS,
)
ROW = Row(name="no-stage-three", formats=("deepspeed",), forbidden=lambda _: True, why="no", source="here")


def make(rung: Rung, split: Split) -> Plan:
    return replace(
        PLAN,
        zero_stage=rung.zero_stage,
        checkpointing=rung.checkpointing,
        offload_optimizer=rung.offload_optimizer,
        offload_parameters=rung.offload_parameters,
        micro_batch=split.micro_batch,
        accumulation=split.accumulation,
    )


def size(plan: Plan) -> int:
    """40 for the states at stage 0, 10 less a stage; 10 a sequence, half of it with any checkpointing."""
    states = 40 - 10 * plan.zero_stage if plan.offload_optimizer == "none" else 2
    return states + plan.micro_batch * (10 if plan.checkpointing.kind == "none" else 5)


def climbed(budget: int, *, illegal_stage: int | None = None) -> Found:
    def weigh(plan: Plan) -> Candidate:
        needed = size(plan)
        moment = Moment("backward", {"optimizer_states": needed})
        ledger = Ledger(
            device=DeviceAccount(
                moments=(moment,), allocated=needed, reserved=needed, whole_gpu=needed, low=needed, high=needed
            ),
            host_per_node={},
            nvme_per_node={},
            disk={},
            states_classic=StatesClassic(parameters=0, gradients=0, optimizer=0),
        )
        over = Overflow(
            place="device",
            needed=needed,
            available=budget,
            largest_part="optimizer_states",
            largest_part_bytes=needed,
            moment="backward",
        )
        fits = needed <= budget
        return Candidate(plan=plan, ledger=ledger, fit=Fit(fits=fits, tight=False, overflows=() if fits else (over,)))

    def broken(plan: Plan) -> list[Row]:
        return [ROW] if illegal_stage in (plan.zero_stage, -1) else []

    return climb(rungs(Wishes(), 4), SPLITS, [make], broken, weigh)


def test_the_first_that_fits_with_its_largest_micro_batch() -> None:
    found = climbed(55)
    assert (found.chosen.plan.zero_stage, found.chosen.plan.micro_batch) == (0, 1)
    found = climbed(49)
    assert (found.chosen.plan.zero_stage, found.chosen.plan.micro_batch) == (1, 1)
    found = climbed(80)
    assert (found.chosen.plan.zero_stage, found.chosen.plan.micro_batch) == (0, 4)


def test_what_is_below_is_refused_and_what_is_above_runs_up() -> None:
    found = climbed(39)
    assert [entry.plan.zero_stage for entry in found.rejected] == [0, 1]
    assert found.rejected[0].reason == (
        "DDP (ZeRO-0), micro-batch 1 x 8: 50 B of 39 B budget at the backward; largest part optimizer_states 50 B "
        "(over by 11 B)"
    )
    # ZeRO-3 as it is, then ZeRO-1 (30 + 5 a sequence) and ZeRO-2 with selective checkpointing; ZeRO-0 doesn't fit so.
    assert [(c.plan.zero_stage, c.plan.checkpointing.kind) for c in found.alternatives] == [
        (3, "none"),
        (1, "selective"),
        (2, "selective"),
    ]
    assert len(found.alternatives) == RUNNERS_UP


def test_an_illegal_rung_is_stepped_over_and_said_once() -> None:
    found = climbed(24, illegal_stage=3)
    assert found.chosen.plan.offload_optimizer == "cpu"
    assert [entry.reason for entry in found.rejected if entry.candidate is None] == ["no [no-stage-three]"]


def test_nothing_fits_names_the_closest() -> None:
    with pytest.raises(NothingFitsError) as refused:
        climbed(6)
    assert refused.value.closest.plan.offload_optimizer != "none"
    assert size(refused.value.closest.plan) == min(
        size(entry.plan) for entry in refused.value.rejected if entry.candidate is not None
    )


def test_nothing_legal_names_the_rule() -> None:
    with pytest.raises(IllegalPlanError, match="no-stage-three"):
        climbed(1000, illegal_stage=-1)
