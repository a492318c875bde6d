"""``--here``: the hardware section of the machine that dsgen runs on, and what could not be seen of it."""

from pathlib import Path

from dsgen.init.here.disks import read_disks
from dsgen.init.here.gpus import read_gpus
from dsgen.init.here.limits import read_limits
from dsgen.init.here.machine import Machine
from dsgen.init.here.memory import read_memory
from dsgen.init.here.network import read_network
from dsgen.init.values import Findings, merged


def here(machine: Machine | None = None, folder: str | None = None) -> Findings:
    """What this machine has. Nothing is installed, changed or measured: it is only looked at."""
    looked_at = machine or Machine()
    try:
        where = folder or str(Path.cwd())
    except OSError:
        where = "/"
    found = merged(
        read_gpus(looked_at),
        read_memory(looked_at),
        read_disks(looked_at, where),
        read_network(looked_at),
        read_limits(looked_at),
    )
    return Findings(given=found.given, unknown=found.unknown, notes=found.notes, sources=("this machine",))
