"""What must hold for every plan."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import BUCKETS, GPT_7B, LLAMA_2_7B, LLAMA_3_8B, ledger

from dsgen.memory.ledger import PARTS, Ledger
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Architecture, Moe
from dsgen.spec.values import Method, Training

SMALL = {"layers": 4}
MODELS: list[Architecture] = [
    replace(LLAMA_2_7B, **SMALL),  # type: ignore[arg-type]
    replace(LLAMA_3_8B, **SMALL),  # type: ignore[arg-type]
    replace(GPT_7B, **SMALL),  # type: ignore[arg-type]
    replace(LLAMA_3_8B, layers=4, moe=Moe(experts=8, top_k=2, intermediate=4096, first_dense_layers=1)),
]
models = st.sampled_from(MODELS)
trainings = st.builds(
    Training,
    attention=st.sampled_from(["eager", "sdpa", "flash"]),
    loss=st.sampled_from(["full", "chunked", "fused_linear"]),
    method=st.sampled_from([Method(), Method(type="lora"), Method(type="lora", dropout=0.1)]),
)
plans = st.fixed_dictionaries(
    {
        "zero_stage": st.integers(0, 3),
        "precision": st.sampled_from(["bf16", "fp16", "fp32"]),
        "checkpointing": st.sampled_from(
            [Checkpointing(), Checkpointing("full"), Checkpointing("selective"), Checkpointing("every", 2)]
        ),
        "micro_batch": st.integers(1, 8),
        "accumulation": st.integers(1, 4),
        "world_size": st.sampled_from([2, 4, 8, 16, 64]),
        "overlap_comm": st.sampled_from([None, True, False]),
    }
)
offloads = st.sampled_from(["none", "cpu", "nvme"])


def account_for(arch: Architecture, training: Training, changes: dict[str, Any], s: int = 512) -> Ledger:
    return ledger(arch, training, s=s, **changes)


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans, offloads)
def test_parts_add_up(arch: Architecture, training: Training, changes: dict[str, Any], offload: str) -> None:
    if changes["zero_stage"]:
        changes |= {"offload_optimizer": offload}
    if changes["zero_stage"] == 3:
        changes |= {"offload_parameters": offload}
    found = account_for(arch, training, changes)
    device = found.device
    assert [moment.name for moment in device.moments] == ["end of forward", "backward", "optimizer step"]
    for moment in device.moments:
        assert moment.total == sum(moment.parts.values()) <= device.peak
        assert set(moment.parts) <= set(PARTS)
        assert all(isinstance(size, int) and size > 0 for size in moment.parts.values())
    assert device.peak == device.peak_moment.total <= device.whole_gpu
    assert device.low < device.peak < device.high
    assert device.allocated < device.reserved < device.whole_gpu
    for place in (found.host_per_node, found.nvme_per_node, found.disk):
        assert all(isinstance(size, int) and size > 0 for size in place.values())


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans)
def test_more_shards_never_cost_more(arch: Architecture, training: Training, changes: dict[str, Any]) -> None:
    fewer = account_for(arch, training, changes)
    more = account_for(arch, training, changes | {"world_size": 2 * changes["world_size"]})
    assert more.device.peak <= fewer.device.peak
    assert more.states_classic.total <= fewer.states_classic.total
    assert more.disk == fewer.disk


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans, st.integers(16, 2000), st.integers(1, 2000))
def test_longer_sequences_never_cost_less(
    arch: Architecture, training: Training, changes: dict[str, Any], s: int, more: int
) -> None:
    assert (
        account_for(arch, training, changes, s).device.peak
        <= account_for(arch, training, changes, s + more).device.peak
    )


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans)
def test_larger_micro_batches_never_cost_less(arch: Architecture, training: Training, changes: dict[str, Any]) -> None:
    larger = changes | {"micro_batch": changes["micro_batch"] + 1}
    assert account_for(arch, training, changes).device.peak <= account_for(arch, training, larger).device.peak


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans)
def test_full_checkpointing_costs_at_most_a_block_input_more_than_none(
    arch: Architecture, training: Training, changes: dict[str, Any]
) -> None:
    # The block that runs backwards is recomputed from its input, which is there beside all else. Where the peak
    # lies in the first block, behind which all gradients are, that is the only difference.
    none = account_for(arch, training, changes | {"checkpointing": Checkpointing()})
    full = account_for(arch, training, changes | {"checkpointing": Checkpointing("full")})
    block_input = 4 * arch.hidden * 512 * changes["micro_batch"]
    assert full.device.peak <= none.device.peak + block_input * 1.1


@settings(deadline=None, max_examples=50)
@given(models, plans)
def test_adapters_never_cost_more_than_full_training(arch: Architecture, changes: dict[str, Any]) -> None:
    # Adapter weights themselves are a fraction of a percent; that states and gradients vanish outweighs them.
    full = account_for(arch, Training(attention="flash"), changes)
    lora = account_for(arch, Training(attention="flash", method=Method(type="lora", rank=8)), changes)
    assert lora.device.peak <= full.device.peak


@settings(deadline=None, max_examples=50)
@given(models, trainings, plans)
def test_offload_moves_states_from_the_gpu_to_the_host(
    arch: Architecture, training: Training, changes: dict[str, Any]
) -> None:
    changes |= {"zero_stage": 3, "buckets": BUCKETS}
    kept = account_for(arch, training, changes)
    moved = account_for(arch, training, changes | {"offload_optimizer": "cpu"})
    assert moved.device.peak < kept.device.peak
    assert "optimizer_states" not in moved.device.peak_moment.parts
    assert moved.host_per_node.get("optimizer states", 0) > 0 or "weights while loading" in moved.host_per_node
    on_nvme = account_for(arch, training, changes | {"offload_optimizer": "nvme"})
    assert on_nvme.nvme_per_node["optimizer states"] > 0
    assert on_nvme.device.peak == moved.device.peak
