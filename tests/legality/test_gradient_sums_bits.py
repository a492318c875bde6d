"""How many gradients may be added up in a type, against arithmetic in that type."""

import pytest
from legality_cases import PLAN

from dsgen.legality.gradient_sums import BITS, sums_coarsely, too_many
from dsgen.plan import Precision

torch = pytest.importorskip("torch", reason="torch is not installed (extra: smoke)")
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", TYPES)
def test_bits_are_those_of_torch(precision: Precision) -> None:
    assert torch.finfo(TYPES[precision]).eps == 2.0 ** (1 - BITS[precision])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_what_is_added_to_so_many_arrives_with_three_bits(precision: Precision) -> None:
    """Between 1 and 2 there are so many steps that 1 + k / 4 arrives, and what lies between two of these does not."""
    total = torch.tensor(float(too_many(precision)), dtype=TYPES[precision])
    arrived = {float(total + 1 + k / 16 - total) for k in range(17)}
    assert arrived == {1.0, 1.25, 1.5, 1.75, 2.0}


def test_coarse_sums() -> None:
    from dataclasses import replace

    assert too_many("bf16") == 32
    assert not sums_coarsely(replace(PLAN, accumulation=31))
    assert sums_coarsely(replace(PLAN, accumulation=32))
    assert sums_coarsely(replace(PLAN, accumulation=32, gradient_precision="bf16"))
    assert not sums_coarsely(replace(PLAN, accumulation=32, gradient_precision="fp32"))
    assert not sums_coarsely(replace(PLAN, accumulation=32, precision="fp16"))
