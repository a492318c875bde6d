"""Constants that runs estimate begin, without them, at what was known before."""

from dataclasses import dataclass
from math import log

import pytest

from dsgen.facts.constants import constant, constants, constants_as
from dsgen.facts.priors import priors
from dsgen.facts.tunable import names_of
from dsgen.score.throughput_fit import ESTIMATED, from_priors, leave_one_out


@dataclass(frozen=True, slots=True)
class Seen:
    """A figure that is a constant."""

    source: str
    name: str
    measured: float

    def residual(self) -> float:
        return log(constant(self.name) / self.measured)


def test_each_has_a_row_in_the_other_tables() -> None:
    assert set(priors()) <= set(constants())
    assert set(ESTIMATED) == set(names_of("time"))
    for name, prior in priors().items():
        assert prior.source, name
        assert prior.spread > 0, name
        # What runs say is within three deviations of what was known: otherwise one of both is wrong.
        assert abs(log(constant(name) / prior.value)) < 3 * prior.spread, name


def test_a_source_that_is_left_out_does_not_speak_through_the_table() -> None:
    """One source alone knows host_ring. Without it the constant is what it was before any run, wherever the table has
    it; with it, what the source says."""
    rows = [Seen("ring", "host_ring", 0.001)] * 40 + [Seen("other", "host_step", 0.02)] * 40
    prior = priors()["host_ring"].value
    for stated in (constant("host_ring"), 0.001):
        with constants_as({"host_ring": stated}):
            held = leave_one_out(rows)["ring"]
            assert held.within == pytest.approx(0, abs=0.03)
            assert held.without == pytest.approx(abs(prior / 0.001 - 1), rel=0.01)
            assert from_priors(rows)["host_ring"] == pytest.approx(0.001, rel=0.05)
