"""Time of a matrix product by its shape."""

from dataclasses import replace

import pytest
from made import machines

from dsgen.steptime.machine import Machine, machine_of
from dsgen.steptime.matmul import product


@pytest.fixture
def machine() -> Machine:
    """An A100: 108 multiprocessors; round rates, so that what is expected can be read."""
    found = machine_of(machines("a100-80gb-sxm").gpu, "bf16")
    assert found.units == 108
    return replace(found, products=250e12, memory=1e30, small_tile=0.75, kernel_start=0.0)


def test_a_large_product_is_its_flops_over_the_rate(machine: Machine) -> None:
    """108 x 128 rows and 128 x 128 columns make whole waves of tiles."""
    m, n, k = 108 * 128, 128 * 128, 8192
    assert product(machine, m, n, k, 2, machine.products) == pytest.approx(2 * m * n * k / 250e12)


def test_the_last_wave_counts_whole(machine: Machine) -> None:
    """109 tiles of 128 x 128 take as long as 216, unless small tiles do better: 436 of 64 x 64 take five waves of 108,
    at three quarters of the rate."""
    whole = product(machine, 108 * 128, 128, 8192, 2, machine.products)
    more = product(machine, 109 * 128, 128, 8192, 2, machine.products)
    assert more == pytest.approx(whole * min(2, 5 / 4 / 0.75))


def test_few_tiles_are_split_along_k(machine: Machine) -> None:
    """54 tiles would leave half of the machine idle; cut in two along k they fill it. With a short k they don't."""
    m, n = 54 * 128, 128
    assert product(machine, m, n, 8192, 2, 250e12) == pytest.approx(2 * m * n * 8192 / 250e12)
    # Small tiles then: 216 of them make two whole waves.
    assert product(machine, m, n, 512, 2, 250e12) == pytest.approx(2 * m * n * 512 / 250e12 / 0.75)


def test_a_thin_product_is_bound_by_memory(machine: Machine) -> None:
    """An adapter of rank 16 over 16384 tokens: input and weight read, output written."""
    slow = replace(machine, memory=1e12)
    tokens, rank, width = 16384, 16, 4096
    expected = 2 * (tokens * width + rank * width + tokens * rank) / 1e12
    assert product(slow, tokens, rank, width, 2, 250e12) == pytest.approx(expected)


def test_no_kernel_is_shorter_than_the_shortest(machine: Machine) -> None:
    assert product(replace(machine, kernel_start=2e-6), 1, 1, 1, 2, 250e12) == 2e-6
