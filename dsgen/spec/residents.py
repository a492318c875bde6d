"""What the spec says of other things on the cards."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsgen.facts.models import find_model, nearest_models
from dsgen.spec.faults import Fault
from dsgen.spec.schema_walk import Typed
from dsgen.spec.values import KeyPath, Resident
from dsgen.spec.words import shown

SAME = "same"


def residents_of(written: Sequence[Mapping[str, Any]]) -> tuple[Resident, ...]:
    """Each entry of ``residents``; names were checked by ``unknown_residents``."""
    return tuple(map(_resident, written))


def _resident(entry: Mapping[str, Any]) -> Resident:
    if "model" in entry:
        name = entry["model"]
        row = None if name.lower() == SAME else find_model(name)
        what = f"{entry.get('role', 'reference')} model"
        return Resident(
            what=what, model=SAME if row is None else row.name, parameters=None if row is None else row.parameters
        )
    reserve = entry["reserve"]
    if isinstance(reserve, str):
        return Resident(what=entry["name"], share=float(reserve.rstrip(" %")) / 100)
    return Resident(what=entry["name"], reserve=reserve)


def unknown_residents(document: Typed) -> Iterator[Fault]:
    """Models that are no preset."""
    for at, entry in enumerate(document.value.get("residents", ())):
        name = entry.get("model")
        if name is None or name.lower() == SAME or find_model(name) is not None:
            continue
        path: KeyPath = ("residents", at, "model")
        close = nearest_models(name)
        suggestion = f"did you mean {', '.join(close)}? " if close else ""
        help = f"{suggestion}write same, or a name of dsgen show models; for others a program's reserve in bytes"
        yield Fault(path, document.places[path], f"residents: no model is called {shown(name)}", help)
