"""The loss's bytes."""

from dataclasses import replace

import pytest
from worlds import LLAMA_3_8B, hardware, plan, setting, shapes_of

from dsgen.memory.account import account
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.logits import logits
from dsgen.plan import Checkpointing
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Attention, Code, Loss, Method, Training
from dsgen.target import Format, Target

TOKENS, V, H = 2048, 128256, 4096


def loss(kind: Loss, precision: str = "bf16") -> tuple[int, int]:
    found = logits(setting(LLAMA_3_8B, Training(attention="flash", loss=kind), s=TOKENS, precision=precision))
    return found.forward, found.backward


def test_full() -> None:
    assert loss("full") == (10 * V * TOKENS, 12 * V * TOKENS)


def test_full_in_fp32_makes_no_copy() -> None:
    assert loss("full", "fp32") == (8 * V * TOKENS, 12 * V * TOKENS)


def test_chunked_has_one_chunk_at_a_time() -> None:
    hidden = 2 * H * TOKENS
    assert loss("chunked") == (10 * V * TOKENS // 8 + hidden, 12 * V * TOKENS // 8 + hidden)


def test_fused_linear_makes_the_heads_gradient_in_the_forward_pass() -> None:
    assert loss("fused_linear")[0] == 8 * H * TOKENS + 2 * 2 * V * H


@pytest.mark.parametrize("kind", ["chunked", "fused_linear"])
def test_is_less_than_full(kind: Loss) -> None:
    assert loss(kind)[1] < loss("full")[1]


GEMMA_2 = replace(LLAMA_3_8B, hf_architecture="Gemma2ForCausalLM", family="gemma-2")


def test_capped_logits_keep_what_tanh_gave() -> None:
    """tanh's derivative needs its output: 2 bytes of each logit more, in both passes; a fused head caps by chunks."""
    llama = replace(LLAMA_3_8B, hf_architecture="GemmaForCausalLM")
    plain, capped = logits(setting(llama)), logits(setting(GEMMA_2))
    more = 2 * 128256 * 2048
    assert (capped.forward - plain.forward, capped.backward - plain.backward) == (more, more)
    fused = Training(loss="fused_linear")
    assert logits(setting(GEMMA_2, fused)) == logits(setting(llama, fused))


def test_litgpt_takes_capped_attention_in_steps() -> None:
    """litgpt/model.py:scaled_dot_product_attention: of each score tanh's output, c, softmax in fp32, 4, its cast, c."""
    code = Code(library="litgpt")

    def kept(arch: Architecture, attention: Attention) -> int:
        training = Training(attention=attention, code=code)
        return activations(setting(arch, training, checkpointing=Checkpointing("none"))).layers[0].kept

    assert kept(GEMMA_2, "sdpa") == kept(GEMMA_2, "eager")
    scores = 32 * 2048
    assert kept(GEMMA_2, "sdpa") - kept(LLAMA_3_8B, "sdpa") == 2048 * ((2 + 4 + 2) * scores - 4 * 32)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("adapters", [True, False])
def test_torchtune_applies_the_head_by_chunks(compiled: bool, adapters: bool) -> None:
    """8 chunks. Compiled: all logits in 16 bit, and one chunk's gradient; where the head is trained, seven eighths of
    the gradients beside its own and an addend. Not compiled: log-probabilities in fp32, and one chunk's fp32 logits."""
    method = Method(type="lora") if adapters else Method()
    training = Training(loss="chunked", compile=compiled, method=method, code=Code(library="torchtune"))
    found = logits(setting(LLAMA_3_8B, training, s=TOKENS))
    every, head = 2 * V * TOKENS, 2 * V * H
    kept = 0 if compiled else 4 * V * TOKENS
    assert found.forward == every + kept + (0 if compiled else 4 * V * TOKENS // 8)
    losses = every + kept + every // 8
    assert found.backward == max(losses, 0 if adapters else every - every // 8 + 2 * head)


@pytest.mark.parametrize(("form", "stage"), [("ddp", 0), ("fsdp1", 3), ("fsdp2", 3)])
def test_held_logits_stay_while_blocks_run_backwards(form: Format, stage: int) -> None:
    """A loop's variable holds fp32 logits, 4 bytes each, from the loss to the end of the pass. Long sequences without
    checkpointing, so that a block's backward pass is the largest."""
    arch = replace(LLAMA_3_8B, vocab=1000, layers=2)

    def peak(keeps: bool) -> int:
        training = Training(attention="flash", method=Method(type="lora"), code=Code(keeps_logits=keeps))
        decided = plan(zero_stage=stage, checkpointing=Checkpointing("full"))
        shapes = shapes_of(arch, training)
        found = account(decided, shapes, training, 16384, hardware(), Target(format=form)).device
        return max(moment.total - moment.parts["framework"] for moment in found.moments)

    assert peak(keeps=True) - peak(keeps=False) == 4 * 1000 * 16384
