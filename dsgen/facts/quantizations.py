"""How frozen weights are stored in few bits. To add a form, add a row to quantizations.csv."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Groups of weights share a scale."""

    name: str
    bits: int
    """Of one weight."""
    group: int
    """Weights that share a scale."""
    group_bytes: float
    """Of the scale and what else a group has."""
    unpack_bytes: float
    """Read and written to make one weight of 16 bits before a matrix product."""
    source: str

    @property
    def width(self) -> float:
        """Bytes of one weight, its share of the scale included: bits / 8 + group_bytes / group."""
        return self.bits / 8 + self.group_bytes / self.group


@cache
def quantizations() -> dict[str, Quantization]:
    """Every form by its name."""
    return {
        row["name"]: Quantization(
            name=row["name"],
            bits=int(row["bits"]),
            group=int(row["group"]),
            group_bytes=float(row["group_bytes"]),
            unpack_bytes=float(row["unpack_bytes"]),
            source=row["source"],
        )
        for row in rows("quantizations")
    }
