"""What turns images into tokens beside a decoder: its tensors, one row of towers.csv each."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows

TEXT = "text"
"""In a shape: the width of the decoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerTensor:
    """One tensor of a tower or of the projector behind it, as often as layers have it."""

    copies: int
    name: str
    """As Hugging Face names it; {n} is the layer."""
    shape: tuple[str, ...]
    """Sizes, or ``text``; in the table with spaces between."""


@cache
def towers() -> dict[str, tuple[TowerTensor, ...]]:
    """By the Hugging Face class of the whole model."""
    found: dict[str, tuple[TowerTensor, ...]] = {}
    for row in rows("towers"):
        tensor = TowerTensor(copies=int(row["copies"]), name=row["name"], shape=tuple(row["shape"].split()))
        found[row["hf_architecture"]] = (*found.get(row["hf_architecture"], ()), tensor)
    return found
