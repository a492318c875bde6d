"""Whether a ledger fits the machines, and where it overflows."""

from collections.abc import Iterator, Mapping
from typing import Literal

from dsgen.facts.constants import constant
from dsgen.hardware import Hardware
from dsgen.memory.ledger import Fit, Ledger, Overflow

TIGHT = 0.1
"""Share of the budget that must be to spare above the band for a fit not to be called tight."""


def fit(ledger: Ledger, hardware: Hardware) -> Fit:
    """Every place whose size is known: the GPU's band within its budget, the host with a reserve for the
    operating system, NVMe, and the disk, which all nodes are taken to share for one checkpoint.

    A place of unknown size is not checked; dsgen says so elsewhere.
    """
    overflows = tuple(_overflows(ledger, hardware))
    spare = hardware.memory_budget - ledger.device.high
    return Fit(fits=not overflows, tight=not overflows and spare < TIGHT * hardware.memory_budget, overflows=overflows)


def _overflows(ledger: Ledger, hardware: Hardware) -> Iterator[Overflow]:
    device = ledger.device
    if device.high > hardware.memory_budget:
        moment = device.peak_moment
        part, size = max(moment.parts.items(), key=lambda item: item[1])
        yield Overflow(
            place="device",
            needed=device.high,
            available=hardware.memory_budget,
            largest_part=part,
            largest_part_bytes=size,
            moment=moment.name,
        )
    if hardware.host_memory is not None:
        usable = int(hardware.host_memory * (1 - constant("host_reserve")))
        yield from _over("host", ledger.host_per_node, usable)
    yield from _over("nvme", ledger.nvme_per_node, hardware.nvme)
    if hardware.disk is not None:
        yield from _over("disk", ledger.disk, hardware.disk * hardware.nodes)


def _over(
    place: Literal["host", "nvme", "disk"], parts: Mapping[str, int], available: int | None
) -> Iterator[Overflow]:
    needed = sum(parts.values())
    if available is None or needed <= available:
        return
    part, size = max(parts.items(), key=lambda item: item[1])
    yield Overflow(place=place, needed=needed, available=available, largest_part=part, largest_part_bytes=size)
