"""Numbers that no derivation gives: one row of constants.csv each, with unit and source."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from dsgen.facts.tables import rows
from dsgen.units import GB, GIB

_UNITS = {"GiB": GIB, "MiB": 2**20, "GB": GB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One named number."""

    name: str
    value: float
    """In bytes where the unit is one of size, else as written."""
    stated: float
    """As written, in ``unit``."""
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
            stated=float(row["value"]),
            unit=row["unit"],
            source=row["source"],
            note=row["note"],
        )
        for row in rows("constants")
    }


_OVERRIDES: ContextVar[Mapping[str, float]] = ContextVar("overrides", default=MappingProxyType({}))


@contextmanager
def constants_as(values: Mapping[str, float]) -> Iterator[None]:
    """Within it these constants have these values (sizes in bytes), the others those of the table."""
    token = _OVERRIDES.set({**_OVERRIDES.get(), **values})
    try:
        yield
    finally:
        _OVERRIDES.reset(token)


def constant(name: str) -> float:
    """The value of one constant, sizes in bytes."""
    changed = _OVERRIDES.get()
    return changed[name] if name in changed else constants()[name].value
