"""What a proof asks and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsgen.smoke.change import Change

Precision = Literal["fp32", "bf16"]
Sums = Literal["fp32", "bf16 on ranks", "bf16 each step", "fp32 on ranks", "fp32 each step"]
"""Where gradients of micro-batches and ranks are added up (dsgen/workers/reference.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """Something that a framework does otherwise than a plain loop, known and allowed for."""

    name: str
    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One training beside a plain loop from the same weights, on the same global batch."""

    name: str
    subject: str
    """deepspeed (a config), deepspeed_folder, fsdp2, or a Python file with an ``observe`` of its own."""
    precision: Precision
    sums: Sums
    tolerance: str
    """Row of dsgen.smoke.proof.tolerances."""
    optimizer: Mapping[str, Any] | None
    """The plain loop's: ``type`` in torch.optim, ``params``, ``dummy_step``; None: the one that the code uses."""
    clip: float | Literal["own"] | Mapping[str, float] | None
    """Threshold; "own": the code's; {"share": x}: x times the norm of the first gradient, which is sure to clip."""
    micro_batch: int
    accumulation: int
    layout: Mapping[str, Any]
    """What the number of collectives follows from; the worker adds what only the running code knows."""
    uneven: bool
    """Targets left out, unequally many in different micro-batches."""
    content: Mapping[str, Any]
    """What else the worker needs: the config to write, the optimizer to pass."""
    changes: tuple[Change, ...] = ()
    traits: tuple[Trait, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One figure held against what it should be."""

    trial: str
    name: str
    """data, first gradient norm, losses, weights, collectives."""
    ok: bool
    difference: float | None
    """Relative; None for collectives, which are counted, and where ``ok`` is by default."""
    tolerance: float | None
    text: str
    """In words: what was found and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """Whether a run is equal to a plain loop."""

    verdict: bool | None
    """None: not compared, ``reason`` says why."""
    reason: str | None = None
    """Where the verdict is false: the check that fails, and the probable mistake."""
    checks: tuple[Check, ...] = ()
    traits: tuple[Trait, ...] = ()
    changes: tuple[Change, ...] = ()
    """Made for the proof alone."""
    notes: tuple[str, ...] = ()
