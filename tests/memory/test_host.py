"""RAM, NVMe and disk."""

from dataclasses import replace

import pytest
from worlds import LLAMA_2_7B, flat, hardware, ledger, plan

from dsgen.memory.account import account
from dsgen.memory.host import host_per_node
from dsgen.memory.ledger import Ledger
from dsgen.memory.setting import setting_of
from dsgen.plan import Buckets, Plan, Swap
from dsgen.shapes.values import Block, Shapes, Tensor
from dsgen.spec.values import Training
from dsgen.target import Target

ONE_GROUP = Buckets(
    reduce=10**8,
    allgather=10**8,
    prefetch=10**8,
    max_live_parameters=10**9,
    max_reuse_distance=10**9,
    persistence_threshold=10**5,
    sub_group_size=10**12,
)
PAGEABLE = Swap(pin_memory=False)


def of(shapes: Shapes, decided: Plan) -> Ledger:
    return account(decided, shapes, Training(), 128, hardware(), Target())


def many_tensors(parameters: int, each: int = 10**7) -> Shapes:
    """A model whose groups close almost exactly where asked."""
    block = Block((Tensor("w", (each,)),))
    return Shapes("even", replace(LLAMA_2_7B, layers=parameters // each), (block,) * (parameters // each), ())


def test_stage_2_offload_is_18_bytes_a_parameter_and_the_largest_tensor() -> None:
    decided = plan(zero_stage=2, offload_optimizer="cpu", buckets=ONE_GROUP, swap=PAGEABLE)
    host = dict(of(many_tensors(8 * 10**9), decided).host_per_node)
    host.pop("processes")
    # Master 4, states 8, gradients 4, updated weights 2; the ranks of one node hold all shards together.
    assert host.pop("gradients") == 8 * 2 * 10**7
    assert sum(host.values()) == 18 * 8 * 10**9


def test_pinned_tensors_are_rounded_to_a_power_of_two() -> None:
    decided = plan(zero_stage=3, offload_optimizer="cpu", buckets=ONE_GROUP)
    host = of(many_tensors(8 * 10**9), decided).host_per_node
    # 1e9 elements a rank: 2e9 bytes become 2 GiB, 4e9 become 4 GiB; masters and states are pageable.
    assert host["gradients"] == 8 * 2 * 2**30
    assert host["fp32 gradients"] == 8 * 4 * 2**30
    assert host["master weights"] == 4 * 8 * 10**9
    assert host["optimizer states"] == 8 * 8 * 10**9


def test_weights_are_loaded_whole_by_every_rank_below_stage_3() -> None:
    host = ledger(LLAMA_2_7B, zero_stage=2).host_per_node
    assert host["weights while loading"] == 8 * 2 * 6_738_415_616
    assert ledger(LLAMA_2_7B, zero_stage=3).host_per_node["weights while loading"] == 8 * 5 * 10**9


def test_nodes_hold_their_own_ranks_only() -> None:
    decided = plan(zero_stage=3, offload_optimizer="cpu", world_size=16, buckets=ONE_GROUP, swap=PAGEABLE)
    host = of(many_tensors(64 * 10**9), decided).host_per_node
    assert host["optimizer states"] == 8 * 64 * 10**9 // 2


def test_checkpoint_is_14_bytes_a_parameter() -> None:
    disk = of(flat(7 * 10**9), plan()).disk
    assert disk == {"weights": 14 * 10**9, "master weights": 28 * 10**9, "optimizer states": 56 * 10**9}


def test_swap_buffers_of_case_br_020() -> None:
    """7B on one GPU: 5 x 1e9 x 2 = 10 GB parameter pool, max_in_cpu 1e9 x 2 = 2 GB, 4 buffers of a sub-group of 1e9 in
    fp32 = 16 GB: 28 GB of a 32 GB host, and the gradients of all parameters beside them."""
    swap = Swap(optimizer_buffers=4, parameter_buffers=5, parameter_buffer_size=10**9, max_in_cpu=10**9)
    decided = plan(
        world_size=1,
        offload_optimizer="nvme",
        offload_parameters="nvme",
        buckets=replace(ONE_GROUP, sub_group_size=10**9),
        swap=swap,
    )
    shapes = many_tensors(7 * 10**9)
    setting = setting_of(decided, shapes, Training(), 128, hardware(), Target())
    host = host_per_node(setting)
    assert host["parameter swap buffers"] == 10 * 10**9
    assert host["parameters"] == 2 * 10**9
    assert host["optimizer swap buffers"] == 16 * 10**9
    assert sum(host[name] for name in ("parameter swap buffers", "parameters", "optimizer swap buffers")) == 28 * 10**9
    assert host["gradients"] == 2**34  # 14 GB, pinned


@pytest.mark.parametrize(("sub_group_size", "gb"), [(10**12, 80), (10**9, 16)])
def test_sub_group_of_case_br_050(sub_group_size: int, gb: int) -> None:
    """40e9 parameters on 8 GPUs: all states at once are 16 bytes x 5e9 = 80 GB a rank, a group of 1e9 16 GB."""
    decided = plan(offload_optimizer="nvme", buckets=replace(ONE_GROUP, sub_group_size=sub_group_size))
    host = of(many_tensors(40 * 10**9, each=8 * 10**7), decided).host_per_node
    assert host["optimizer swap buffers"] / 8 == gb * 10**9


def test_nvme_holds_what_is_swapped() -> None:
    decided = plan(offload_optimizer="nvme", offload_parameters="nvme", buckets=ONE_GROUP)
    assert of(many_tensors(8 * 10**9), decided).nvme_per_node == {
        "master weights": 32 * 10**9,
        "optimizer states": 64 * 10**9,
        "fp32 gradients": 32 * 10**9,
        "parameters": 16 * 10**9,
    }
