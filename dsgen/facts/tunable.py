"""Which constants a team's own runs may tune, and between what they must lie: tunable.csv. A constant that is not in it
follows from a library's source, or is no property of a cluster."""

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from dsgen.facts.constants import Constant, constants
from dsgen.facts.tables import rows

Kind = Literal["memory", "time"]


@dataclass(frozen=True, slots=True)
class Tunable:
    """One constant, and the least and most that it may be, in the unit of its row."""

    constant: Constant
    kind: Kind
    least: float
    most: float

    @property
    def scale(self) -> float:
        """What one of the row's unit is in the value's: bytes of a GiB, or 1."""
        return self.constant.value / self.constant.stated

    def clamped(self, value: float) -> float:
        """``value`` (bytes where a size) within the bounds."""
        return min(max(value, self.least * self.scale), self.most * self.scale)


@cache
def tunable() -> dict[str, Tunable]:
    """Each by name."""
    return {
        row["name"]: Tunable(
            constant=constants()[row["name"]],
            kind=cast(Kind, row["kind"]),
            least=float(row["least"]),
            most=float(row["most"]),
        )
        for row in rows("tunable")
        # A row of a constant that is gone is a defect, which a test finds; it costs nobody a plan.
        if row["name"] in constants()
    }


def names_of(kind: Kind) -> tuple[str, ...]:
    """Of one kind."""
    return tuple(name for name, each in tunable().items() if each.kind == kind)
