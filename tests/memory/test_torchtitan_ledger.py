"""What torchtitan does with FSDP2 and selective checkpointing, in differences that its pull requests state."""

from dataclasses import replace

import pytest
from worlds import GIB, LLAMA_2_7B, LLAMA_3_8B, hardware, plan, shapes_of

from dsgen.facts.gpus import find_gpu
from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.plan import Checkpointing, Plan
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Code, Training
from dsgen.target import Target

TITAN = Code(library="torchtitan", fused=frozenset(["norm", "loss"]))
APART = replace(TITAN, embedding_apart=True)


def ledger(
    decided: Plan, code: Code, arch: Architecture = LLAMA_3_8B, gpu: str = "h100-80gb-sxm", s: int = 8192
) -> Ledger:
    card = find_gpu(gpu)
    assert card is not None
    training = Training(attention="sdpa", code=code)
    machines = hardware(gpu=card, memory_budget=card.memory)
    return account(decided, shapes_of(arch, training), training, s, machines, Target(format="fsdp2"))


def test_an_embedding_apart_is_not_gathered_at_the_loss() -> None:
    """pytorch/torchtitan#182: "saves ~the embedding parameter size from peak memory": V h elements in bf16."""
    many = plan(checkpointing=Checkpointing("selective"), micro_batch=2)
    together, apart = (ledger(many, code).device.moments[0].parts["gathered_parameters"] for code in (TITAN, APART))
    assert together - apart == 2 * 128256 * 4096


def test_nothing_of_the_states_is_lost() -> None:
    together, apart = (ledger(plan(), code).device.moments[-1].parts for code in (TITAN, APART))
    assert {name: together[name] for name in together if name != "framework"} == {
        name: apart[name] for name in apart if name != "framework"
    }


@pytest.mark.parametrize("accumulation", [1, 4])
def test_the_embedding_is_reduced_last(accumulation: int) -> None:
    """Of a model that is nearly all embedding the end of the backward pass is the peak: its gradient, 2 bytes, which
    becomes a 32nd of fp32 less, in the input of the reduce-scatter, 4 bytes."""
    small = replace(LLAMA_2_7B, layers=1, hidden=512, intermediate=512, heads=8, kv_heads=8, head_dim=64, vocab=512_000)
    found = ledger(plan(accumulation=accumulation, reduce_each_micro_batch=False), APART, small, s=8)
    outer = 512_000 * 512
    assert found.device.moments[1].parts["buffers"] >= 4 * outer * 0.99


def test_blackwell_makes_attention_anew() -> None:
    """pytorch/torchtitan#1196 went from 46.39 to 44.59 GiB as it took cuDNN's attention, which selective_op does not
    keep: h outputs of 2 bytes and 4 bytes a head of each token and layer, 2.0 GiB at 8192 tokens."""
    one = plan(checkpointing=Checkpointing("selective"))
    hopper, blackwell = (ledger(one, APART, gpu=gpu).device.moments[0] for gpu in ("h100-80gb-sxm", "b200"))
    saved = hopper.parts["activations"] - blackwell.parts["activations"]
    assert saved == 32 * 8192 * (2 * 4096 + 4 * 32)
    assert saved / GIB == pytest.approx(46.39 - 44.59, rel=0.15)
    full = plan(checkpointing=Checkpointing("full"))
    assert (
        ledger(full, APART).device.moments[0].parts["activations"]
        == ledger(full, APART, gpu="b200").device.moments[0].parts["activations"]
    )
