"""GPUs and the links between them, as nvidia-smi shows them."""

import re
from dataclasses import dataclass
from functools import cache

from dsgen.facts.gpus import Gpu, find_gpu, gpus
from dsgen.facts.tables import rows
from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings, Given, Unknown

_MIB = 2**20
_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")
_OLD_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_CLOSE = 0.04
"""Share by which the driver's total may differ from a preset's (ECC, other drivers) and still be that card."""
_SOURCE = "nvidia-smi"


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU."""

    name: str
    memory: int
    capability: str | None


def read_gpus(machine: Machine) -> Findings:
    """The GPU and how many of them; other cards than the first kind are noted."""
    cards = _cards(machine)
    if not cards:
        why = "nvidia-smi shows none here; which GPU (dsgen show gpus), or a node preset"
        if machine.names("/sys/class/kfd/kfd/topology/nodes"):
            why = "an AMD driver is here, which dsgen does not ask; which GPU (dsgen show gpus)"
        return Findings(
            unknown=(
                Unknown(("hardware", "gpu"), "h100-80gb-sxm", why, True),
                Unknown(("hardware", "gpus_per_node"), "8", "GPUs of a node; left out, 1"),
            )
        )
    first = cards[0]
    same = [card for card in cards if card.name == first.name]
    notes = _notes(machine, cards, same)
    given = [*_gpu(first), Given(("hardware", "gpus_per_node"), len(same), _SOURCE)]
    return Findings(given=tuple(given), notes=tuple(notes))


def _cards(machine: Machine) -> list[Card]:
    text = machine.run(_QUERY) or machine.run(_OLD_QUERY) or ""
    cards = []
    for line in text.splitlines():
        name, *rest = (cell.strip() for cell in line.split(","))
        if name and rest and rest[0].isdecimal():
            capability = rest[1] if len(rest) > 1 and re.fullmatch(r"\d{1,2}\.\d", rest[1]) else None
            cards.append(Card(name, int(rest[0]) * _MIB, capability))
    return cards


def _notes(machine: Machine, cards: list[Card], same: list[Card]) -> list[str]:
    notes = []
    if len(same) < len(cards):
        others = ", ".join(sorted({card.name for card in cards} - {same[0].name}))
        notes.append(f"other GPUs are here, too, which the spec leaves out: {others}")
    if len(same) > 1:
        topology = machine.run(("nvidia-smi", "topo", "-m"))
        if topology is None:
            notes.append("links between the GPUs could not be seen (nvidia-smi topo -m)")
        elif not re.search(r"\bNV\d+\b", topology):
            notes.append("the GPUs are joined by PCIe: no NVLink is shown, whatever the preset says")
    return notes


def _gpu(card: Card) -> list[Given]:
    preset = preset_of(card)
    if preset is not None:
        return [Given(("hardware", "gpu"), preset.name, f"{_SOURCE}: {card.name}")]
    numbers: dict[str, object] = {"memory": f"{card.memory // _MIB}MiB"}
    if card.capability is not None:
        numbers["compute_capability"] = card.capability
    why = f"{_SOURCE}: {card.name}; no preset: add bf16_tflops where it has bf16"
    return [Given(("hardware", "gpu"), numbers, why)]


def preset_of(card: Card) -> Gpu | None:
    """The preset with the card's name and memory."""
    name = re.sub(r"^(nvidia|tesla|geforce|quadro)[\s-]+", "", card.name.lower())
    name = re.sub(r"^(geforce|tesla|quadro)[\s-]+", "", name)
    words = [word for word in re.split(r"[\s-]+", name) if word]
    candidates = [
        gpu for gpu in gpus().values() if abs(gpu.memory - card.memory) <= _CLOSE * gpu.memory and _shares(words, gpu)
    ]
    exact = find_gpu("-".join(words))
    if exact in candidates:
        return exact
    return max(candidates, key=lambda gpu: _likeness(words, gpu), default=None)


@cache
def _names() -> dict[str, set[str]]:
    """The words of each preset's names."""
    return {
        row["name"]: {part for name in (row["name"], *row["aliases"].split(";")) for part in name.split("-")}
        for row in rows("gpus")
    }


def _shares(words: list[str], gpu: Gpu) -> bool:
    """Whether the model's own word (a100, h200, 4090) is the preset's."""
    return any(word in _names()[gpu.name] for word in words if re.search(r"\d", word) and not word.endswith("gb"))


def _likeness(words: list[str], gpu: Gpu) -> int:
    # SXM4 and SXM5 are SXM; HBM3 cards are SXM unless they say PCIe or NVL.
    short = {re.sub(r"(sxm)\d", r"\1", word) for word in words}
    form = {"sxm"} if not short & {"pcie", "nvl", "sxm"} and "hbm3" in short else set()
    return len((short | form) & _names()[gpu.name])
