"""What a reader hands back, whatever the format: what a file fixes of a spec, and what it says beyond that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dsgen.documents.document import Path
from dsgen.plan import BucketWishes, Checkpointing, SwapWishes, Wishes, ZeroPP

SpecPath = tuple[str, ...]
"""Where a spec says the same thing."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a file fixes, in a spec's words."""

    path: SpecPath
    value: Any
    at: Path | None = None
    """The keys under which the file says it; None: it says nothing, and that means this."""
    why: str = ""
    """Where the value is not the one written: how it follows."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a file that no plan can say."""

    key: str
    value: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file, read."""

    wishes: Wishes = Wishes()
    said: tuple[Said, ...] = ()
    """Everything that the file fixes, the wishes included, under the keys of a spec."""
    open: tuple[str, ...] = ()
    """Keys whose value whoever loads the file fills in ("auto")."""
    passthrough: Mapping[str, Any] = field(default_factory=dict)
    """What has no meaning to a plan but must survive, as nested as it was."""
    not_carried: tuple[LeftOut, ...] = ()

    def get(self, *path: str) -> Any:
        """What the file says under a key path of a spec; None where it says nothing."""
        return next((said.value for said in self.said if said.path == path), None)


def wishes_of_said(said: Iterable[Said]) -> Wishes:
    """The partial plan among what a file says."""
    want: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {"buckets": {}, "swap": {}, "zeropp": {}}
    known = {wish.name for wish in fields(Wishes)}
    for each in said:
        match each.path:
            case ("want", "checkpointing"):
                want["checkpointing"] = checkpointing_of(each.value)
            case ("want", name) if name in known:
                want[name] = each.value
            case ("want", section, name) if section in inner:
                inner[section][name] = each.value
            case ("training", "precision") if each.value != "auto":
                want["precision"] = each.value
    if inner["zeropp"]:
        want["zeropp"] = ZeroPP(**inner["zeropp"])
    return Wishes(**want, buckets=BucketWishes(**inner["buckets"]), swap=SwapWishes(**inner["swap"]))


def checkpointing_of(value: Any) -> Checkpointing:
    """Checkpointing as a spec writes it: a word, or ``{"every": n}``."""
    return Checkpointing("every", value["every"]) if isinstance(value, Mapping) else Checkpointing(value)
