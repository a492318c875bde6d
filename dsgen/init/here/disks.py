"""Disks: where checkpoints may go, and local NVMe drives for offload."""

import re
from dataclasses import dataclass

from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings, Given, Unknown
from dsgen.units import GIB, format_bytes

_LEAST = 100 * GIB
"""A smaller drive holds no optimizer states worth offloading."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One file system."""

    device: str
    path: str
    free: int


def read_disks(machine: Machine, folder: str) -> Findings:
    """Free bytes where we stand, and the NVMe drive with the most room."""
    given, unknown, notes = [], [], []
    space = machine.space(folder)
    if space is None:
        unknown.append(Unknown(("hardware", "disk"), "2TB", "the disk of this folder could not be asked"))
    else:
        given.append(Given(("hardware", "disk"), space[1], f"free on the disk of {folder}"))
    drives = [mount for mount in _mounts(machine) if re.match(r"/dev/(nvme|md|mapper/|dm-)", mount.device)]
    local = [mount for mount in drives if mount.device.startswith("/dev/nvme") or _is_of_nvme(machine, mount.device)]
    largest = max(local, key=lambda mount: mount.free, default=None)
    if largest is not None and largest.free >= _LEAST:
        why = f"{largest.device}, the NVMe drive with the most room"
        given += [
            Given(("hardware", "nvme", "path"), largest.path, why),
            Given(("hardware", "nvme", "size"), largest.free, f"free on {largest.path}"),
        ]
    elif any(name.startswith("nvme") for name in machine.names("/sys/block")):
        notes.append(f"an NVMe drive is here, but none that is mounted has {format_bytes(_LEAST)} free: it is left out")
    return Findings(given=tuple(given), unknown=tuple(unknown), notes=tuple(notes))


def _mounts(machine: Machine) -> list[Mount]:
    found = []
    for line in (machine.read("/proc/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) < 4 or not fields[0].startswith("/dev/") or "rw" not in fields[3].split(","):
            continue
        path = fields[1].replace("\\040", " ")
        if path.startswith(("/boot", "/etc/", "/proc", "/sys", "/run")):
            continue  # a file of the host that a container sees, or a small system partition
        space = machine.space(path)
        if space is not None:
            found.append(Mount(fields[0], path, space[1]))
    return found


def _is_of_nvme(machine: Machine, device: str) -> bool:
    """Whether a RAID or a logical volume lies on NVMe drives alone."""
    members = machine.names(f"/sys/block/{device.rpartition('/')[2]}/slaves")
    return bool(members) and all(member.startswith("nvme") for member in members)
