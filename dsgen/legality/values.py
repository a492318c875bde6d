"""The form of a legality row."""

from collections.abc import Callable
from dataclasses import dataclass

from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything a row may look at."""

    plan: Plan
    shapes: Shapes
    training: Training
    hardware: Hardware
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that may not stand together."""

    name: str
    """Names the mistake: must read as "found: NAME"."""
    formats: tuple[str, ...]
    """Formats to which it applies."""
    forbidden: Callable[[Case], bool]
    why: str
    """One sentence for the user: what happens, and what to write instead. May name {fields} of the plan."""
    source: str
    """Where in which library it is enforced: path/in/package.py:name, several joined by "; "."""
    library: str = "deepspeed"
    """Whose versions ``since`` and ``until`` are."""
    since: str | None = None
    """First version of the library with it; None: all."""
    until: str | None = None
    """First version of the library without it."""
    fields: tuple[str, ...] = ()
    """Fields of the plan or of the training that it is about, so that a message can point at what the user wrote."""
