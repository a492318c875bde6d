"""What could not be checked, or had to be assumed, because the spec does not say it."""

from dsgen.hardware import Hardware
from dsgen.planner.values import Candidate
from dsgen.units import format_bytes


def unknowns(chosen: Candidate, hardware: Hardware) -> tuple[str, ...]:
    """One sentence each."""
    ledger = chosen.ledger
    unchecked = "is not stated, so it was not checked"
    candidates = (
        (hardware.host_memory, ledger.host_per_node, f"Host memory {unchecked}: the plan needs {{}} a node."),
        (hardware.nvme, ledger.nvme_per_node, f"The size of the NVMe {unchecked}: the plan needs {{}} a node."),
        (hardware.disk, ledger.disk, f"Disk space {unchecked}: one checkpoint takes {{}}."),
    )
    return tuple(
        note.format(format_bytes(sum(needed.values())))
        for known, needed, note in candidates
        if known is None and any(needed.values())
    )
