"""ZeRO++: what its second copy of the weights takes."""

import pytest
from worlds import LLAMA_2_7B, ledger

from dsgen.plan import ZeroPP
from dsgen.shapes.tensors import build

PARAMETERS = build("llama", LLAMA_2_7B).parameters


@pytest.mark.parametrize(
    ("zeropp", "bytes_a_parameter"),
    [
        (ZeroPP(secondary_partition=8), 2 / 8),
        (ZeroPP(secondary_partition=4), 2 / 4),
        (ZeroPP(secondary_partition=8, quantized_weights=True), 1 / 8),
        (ZeroPP(quantized_weights=True, quantized_gradients=True), 0),
    ],
)
def test_the_second_copy_is_there_at_every_moment(zeropp: ZeroPP, bytes_a_parameter: float) -> None:
    """Case BR-022: 2 bytes x parameters / 8 on every GPU."""
    with_it = ledger(LLAMA_2_7B, zero_stage=3, world_size=16, zeropp=zeropp)
    without = ledger(LLAMA_2_7B, zero_stage=3, world_size=16)
    for one, other in zip(with_it.device.moments, without.device.moments, strict=True):
        more = one.parts["parameters"] - other.parts["parameters"]
        assert more == pytest.approx(bytes_a_parameter * PARAMETERS, rel=1e-6, abs=1)
