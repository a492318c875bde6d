"""The ladder's order, and how wishes and a single GPU shorten it."""

from dsgen.plan import Checkpointing, Wishes
from dsgen.planner.ladder import Rung, rungs

NONE, SELECTIVE, FULL = Checkpointing("none"), Checkpointing("selective"), Checkpointing("full")


def test_starts_with_the_stages_then_checkpoints_then_offloads() -> None:
    ladder = list(rungs(Wishes(), world_size=8))
    assert ladder[:4] == [Rung(stage, NONE, "none", "none") for stage in (0, 1, 2, 3)]
    assert ladder[4] == Rung(0, SELECTIVE, "none", "none")
    assert ladder[8] == Rung(0, FULL, "none", "none")
    assert ladder[12] == Rung(1, NONE, "cpu", "none")
    assert len(ladder) == len(set(ladder))


def test_nvme_comes_after_every_cpu_rung_with_the_optimizer_away() -> None:
    pairs = list(dict.fromkeys((r.offload_optimizer, r.offload_parameters) for r in rungs(Wishes(), world_size=8)))
    assert pairs.index(("cpu", "cpu")) < pairs.index(("nvme", "none")) < pairs.index(("nvme", "nvme"))


def test_one_gpu_shards_nothing() -> None:
    ladder = list(rungs(Wishes(), world_size=1))
    assert {r.zero_stage for r in ladder if r.offload_optimizer == r.offload_parameters == "none"} == {0, 2}
    # offload needs ZeRO, even on one GPU: stage 1 for the states, 2 for the gradients too, 3 for parameters
    assert {r.zero_stage for r in ladder if (r.offload_optimizer, r.offload_parameters) == ("cpu", "none")} == {1, 2}
    assert {r.zero_stage for r in ladder if r.offload_parameters != "none" or r.offload_optimizer == "nvme"} == {3}


def test_a_wish_holds_its_lever() -> None:
    wishes = Wishes(zero_stage=2, checkpointing=Checkpointing("every", 2), offload_optimizer="cpu")
    ladder = list(rungs(wishes, world_size=8))
    assert {(r.zero_stage, r.checkpointing, r.offload_optimizer) for r in ladder} == {
        (2, Checkpointing("every", 2), "cpu")
    }
    assert ladder[0].offload_parameters == "none"


def test_every_wish_has_a_rung() -> None:
    for optimizer in ("none", "cpu", "nvme"):
        for parameters in ("none", "cpu", "nvme"):
            assert list(rungs(Wishes(offload_optimizer=optimizer, offload_parameters=parameters), world_size=2))
