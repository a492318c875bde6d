"""The network between nodes: the fastest ports that are up."""

import re

from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings, Given, Unknown

_GBIT = ("hardware", "interconnect", "gbit_s")
_RDMA = ("hardware", "interconnect", "rdma")


def read_network(machine: Machine) -> Findings:
    """All InfiniBand ports that are up together; else the fastest Ethernet port."""
    fabric = _infiniband(machine)
    if fabric:
        ports = f"{len(fabric)} port{'s' if len(fabric) > 1 else ''}"
        source = f"/sys/class/infiniband: {ports} of {', '.join(f'{rate:g}' for rate in sorted(set(fabric)))} Gbit/s"
        return Findings(given=(Given(_GBIT, sum(fabric), source), Given(_RDMA, True, "/sys/class/infiniband")))
    speeds = [
        (int(speed), name)
        for name in machine.names("/sys/class/net")
        if _is_hardware(machine, name)
        and (speed := machine.read(f"/sys/class/net/{name}/speed") or "").isdecimal()
        and int(speed) > 0
    ]
    if speeds:
        fastest, name = max(speeds)
        return Findings(given=(Given(_GBIT, fastest / 1000, f"/sys/class/net/{name}/speed"),))
    why = "Gbit/s of one node, for several nodes; no port here tells its speed"
    return Findings(unknown=(Unknown(_GBIT, "100", why),))


def _infiniband(machine: Machine) -> list[float]:
    rates = []
    for device in machine.names("/sys/class/infiniband"):
        for port in machine.names(f"/sys/class/infiniband/{device}/ports"):
            folder = f"/sys/class/infiniband/{device}/ports/{port}"
            rate = re.match(r"([\d.]+) Gb/sec", machine.read(f"{folder}/rate") or "")
            if rate and "ACTIVE" in (machine.read(f"{folder}/state") or ""):
                rates.append(float(rate[1]))
    return rates


def _is_hardware(machine: Machine, name: str) -> bool:
    """Whether an interface has a device behind it, and is up."""
    return bool(machine.names(f"/sys/class/net/{name}/device")) and machine.read(
        f"/sys/class/net/{name}/operstate"
    ) in ("up", "unknown")
