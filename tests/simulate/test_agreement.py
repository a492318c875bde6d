"""Formula and simulation hold each other: whichever is wrong, they part."""

import pytest
from grid import EVERYDAY, GRID, Case, formula_peak

STATES = ("parameters", "gradients", "master_weights", "optimizer_states")


@pytest.mark.parametrize("case", EVERYDAY, ids=str)
def test_everyday_sample(case: Case) -> None:
    agree(case)


@pytest.mark.full
@pytest.mark.parametrize("case", GRID, ids=str)
def test_grid(case: Case) -> None:
    agree(case)


def agree(case: Case) -> None:
    """Peaks within 5 %; what stays between steps within 2 % of the ledger's states."""
    ledger, simulation = case.formula(), case.simulated()
    assert formula_peak(ledger) == pytest.approx(simulation.peak, rel=0.05)
    parts = ledger.device.moments[-1].parts
    kept = simulation.resident_parts
    for part in ("parameters", "master_weights", "optimizer_states"):
        stated = parts.get(part, 0)  # type: ignore[call-overload]
        assert kept.get(part, 0) == pytest.approx(stated, rel=0.02), part
