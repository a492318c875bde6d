"""Main memory, and what a container leaves of it."""

import re
from collections.abc import Iterator

from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings, Given, Unknown
from dsgen.units import format_bytes

_NO_LIMIT = 2**60
"""cgroup v1 writes a number near 2^63 where there is none."""


def read_memory(machine: Machine) -> Findings:
    """The smaller of what is built in and what the control group allows."""
    total = _total(machine)
    limits = sorted(_limits(machine))
    if total is None and not limits:
        why = "neither /proc/meminfo nor a cgroup limit could be read"
        return Findings(unknown=(Unknown(("hardware", "host_memory"), "512GiB", why),))
    least, source = min([*limits, *([(total, "/proc/meminfo")] if total is not None else [])])
    path = ("hardware", "host_memory")
    if total is not None and least < total:
        source = f"{source}: less than the {format_bytes(total)} of the machine"
    return Findings(given=(Given(path, least, source),))


def _total(machine: Machine) -> int | None:
    found = re.search(r"^MemTotal:\s+(\d+) kB", machine.read("/proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _limits(machine: Machine) -> Iterator[tuple[int, str]]:
    """Limits of our own control group and of those above it."""
    groups = machine.read("/proc/self/cgroup") or ""
    unified = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), "/")
    legacy = next((line.split(":", 2)[2] for line in groups.splitlines() if ":memory:" in line), "/")
    for base, file, group in (
        ("/sys/fs/cgroup", "memory.max", unified),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", legacy),
    ):
        steps = [step for step in group.split("/") if step and step != ".."]
        for depth in range(len(steps) + 1):
            path = "/".join([base, *steps[:depth], file])
            text = machine.read(path) or ""
            if text.isdecimal() and int(text) < _NO_LIMIT:
                yield int(text), path
