"""What is known of an estimated constant before any run is looked at: one row of priors.csv each.

constants.csv has what all runs together give. An estimate that leaves runs out must not begin there: the runs that are
left out would speak through it.
"""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """One constant, in the unit of its row of constants.csv."""

    value: float
    spread: float
    """Standard deviation of its logarithm: 0.35 where a source bounds it, 0.7 where it only gives the size of it, 1.5
    where nothing does."""
    source: str


@cache
def priors() -> dict[str, Prior]:
    """Each by name, in the order of the table."""
    return {
        row["name"]: Prior(value=float(row["value"]), spread=float(row["spread"]), source=row["source"])
        for row in rows("priors")
    }
