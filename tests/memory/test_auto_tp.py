"""Tensor parallelism as DeepSpeed's AutoTP does it: projections are split, all else is whole on every rank."""

from dataclasses import replace

import pytest
from worlds import LLAMA_3_8B, hardware, plan

from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.auto_tp import parameters_of_rank
from dsgen.memory.setting import setting_of
from dsgen.plan import Checkpointing
from dsgen.shapes.tensors import build
from dsgen.spec.values import Training
from dsgen.target import Target

H, WIDE, V, L = 4096, 14336, 128256, 32
SHAPES = build("llama-3.1-8b", LLAMA_3_8B)
TRAINER = Target(loaded_by="transformers")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_embedding_and_norms_are_whole(ranks: int) -> None:
    """Per layer q and o h^2 each, k and v h^2 / 4 each, 3 h i; two norms; head h V. Embedding h V and the last norm."""
    split = L * (2.5 * H * H + 3 * H * WIDE) + H * V
    whole = L * 2 * H + H * V + H
    assert parameters_of_rank(SHAPES, ranks) == (split // ranks + whole, split // ranks + whole)
    assert split + whole == SHAPES.parameters


def test_a_tied_head_stays_whole() -> None:
    tied = build("tied", replace(LLAMA_3_8B, tied=True))
    counted, _ = parameters_of_rank(tied, 2)
    assert counted == tied.parameters - L * (2.5 * H * H + 3 * H * WIDE) / 2


def kept(ranks: int, kind: str = "none") -> int:
    decided = plan(
        zero_stage=1,
        world_size=8,
        micro_batch=1,
        tensor_parallel=ranks,
        checkpointing=Checkpointing(kind),  # type: ignore[arg-type]
    )
    training = Training(attention="flash")
    return activations(setting_of(decided, SHAPES, training, 4096, hardware(), TRAINER)).layers[0].kept


def test_the_residual_stream_is_whole_and_the_rest_is_split() -> None:
    """Korthikanti et al., arXiv 2205.05198: (10 + 24 / t) s b h, not 34 / t: a constant and a part that halves."""
    one, two, four = kept(1), kept(2), kept(4)
    assert one > two > four
    assert two - four == pytest.approx((one - two) / 2, rel=1e-3)
    constant = one - 2 * (one - two)
    assert 0 < constant < one / 2


def test_full_checkpointing_keeps_the_whole_input() -> None:
    assert kept(1, "full") == kept(4, "full") == 2 * H * 4096
