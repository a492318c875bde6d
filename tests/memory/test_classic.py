"""The textbook account against the ZeRO paper's own figures."""

import pytest
from worlds import LLAMA_2_7B, flat, hardware, plan, shapes_of

from dsgen.memory.account import account
from dsgen.memory.ledger import StatesClassic
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Method, Training
from dsgen.target import Target


def classic(shapes: Shapes, stage: int, gpus: int) -> StatesClassic:
    decided = plan(zero_stage=stage, world_size=gpus)
    return account(decided, shapes, Training(), 128, hardware(), Target()).states_classic


@pytest.mark.parametrize(("stage", "gb"), [(0, 112), (1, 38.5), (2, 26.25), (3, 14)])
def test_seven_billion_on_eight(stage: int, gb: float) -> None:
    assert classic(flat(7 * 10**9), stage, 8).total / 1e9 == gb


@pytest.mark.parametrize(("stage", "gb"), [(0, 120), (1, 31.40625), (2, 16.640625), (3, 1.875)])
def test_figure_1_of_the_zero_paper(stage: int, gb: float) -> None:
    # arXiv 1910.02054, figure 1: 7.5e9 parameters on 64 GPUs: 120, 31.4, 16.6, 1.9 GB.
    assert classic(flat(7_500_000_000), stage, 64).total / 1e9 == gb


def test_a_stated_number_of_parameters_wins_over_the_inferred_shape() -> None:
    shapes = flat(6_900_000_000, stated_parameters=7 * 10**9)
    assert classic(shapes, 0, 1).total == 112e9


def test_parts_are_2_2_12() -> None:
    account = classic(flat(10**9), 0, 1)
    assert (account.parameters, account.gradients, account.optimizer) == (2e9, 2e9, 12e9)


def test_frozen_weights_cost_two_bytes() -> None:
    training = Training(method=Method(type="lora", rank=16))
    shapes = shapes_of(LLAMA_2_7B, training)
    # 16 (in + out) for q, k, v, o, gate, up, down of 32 layers.
    trainable = 32 * 16 * (4 * 8192 + 3 * (4096 + 11008))
    assert shapes.trainable == trainable
    account = classic(shapes, 0, 1)
    assert account.total == 2 * shapes.parameters + 14 * trainable
