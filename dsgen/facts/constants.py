"""Numbers that no derivation gives: one row of constants.csv each, with unit and source."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows
from dsgen.units import GB, GIB

_UNITS = {"GiB": GIB, "MiB": 2**20, "GB": GB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One named number."""

    name: str
    value: float
    """In bytes where the unit is one of size, else as written."""
    unit: str
    source: str
    note: str


@cache
def constants() -> dict[str, Constant]:
    """Every constant by name."""
    return {
        row["name"]: Constant(
            name=row["name"],
            value=float(row["value"]) * _UNITS.get(row["unit"], 1),
            unit=row["unit"],
            source=row["source"],
            note=row["note"],
        )
        for row in rows("constants")
    }


def constant(name: str) -> float:
    """The value of one constant, sizes in bytes."""
    return constants()[name].value
