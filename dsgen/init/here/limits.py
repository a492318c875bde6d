"""Limits that stop a training only when it runs: locked memory, shared memory."""

import re

from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings
from dsgen.units import GIB, format_bytes

_SHARED = "/dev/shm"
_LEAST_SHARED = GIB
"""NCCL and data-loader workers put their buffers there; containers often get 64 MiB."""


def read_limits(machine: Machine) -> Findings:
    """What is too small for what a plan may want; nothing of it has a place in a spec."""
    notes = []
    locked = re.search(r"^Max locked memory\s+(\S+)", machine.read("/proc/self/limits") or "", re.MULTILINE)
    if locked is None:
        notes.append("the limit of locked memory could not be read")
    elif locked[1].isdecimal() and int(locked[1]) < GIB:
        notes.append(
            f"locked memory (ulimit -l) is limited to {format_bytes(int(locked[1]))}: RDMA, and DeepSpeed's NVMe "
            "offload, need it unlimited"
        )
    space = machine.space(_SHARED)
    if space is None:
        notes.append("shared memory (/dev/shm) could not be seen")
    elif space[0] < _LEAST_SHARED:
        notes.append(
            f"shared memory (/dev/shm) has {format_bytes(space[0])}: NCCL and data loaders want more; start the "
            "container with --ipc=host, or --shm-size"
        )
    return Findings(notes=tuple(notes))
