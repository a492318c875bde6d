"""Nodes: one row of nodes.csv each. To add a node, add a row there."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import index, nearest, number, rows
from dsgen.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine that one can rent or buy; unknown figures are None."""

    name: str
    provider: str
    gpu: str
    """A name of gpus.csv."""
    gpus: int
    vcpus: int | None
    host_memory: int | None
    """Bytes."""
    local_nvme: int | None
    """Bytes; 0: it has none."""
    inter_node_gbit_s: float | None
    """All network cards together, one way."""
    nic: str
    source: str

    @property
    def rdma(self) -> bool | None:
        """Whether the network does RDMA: InfiniBand and RoCE do, plain Ethernet does not, EFA on some sizes (None)."""
        if self.nic.startswith(("ENA", "Ethernet", "gVNIC")):
            return False
        return True if "InfiniBand" in self.nic or "RoCE" in self.nic else None


def _scaled(cell: str, unit: int) -> int | None:
    value = number(cell)
    # Rounded: 3.84 TB is 3,840,000,000,000 bytes, which a float misses by a fraction.
    return None if value is None else round(value * unit)


@cache
def nodes() -> dict[str, Node]:
    """Every node by its name, in the table's order."""
    return {
        row["name"]: Node(
            name=row["name"],
            provider=row["provider"],
            gpu=row["gpu"],
            gpus=int(row["gpus"]),
            vcpus=int(row["vcpus"]) if row["vcpus"] else None,
            host_memory=_scaled(row["host_memory_gib"], GIB),
            local_nvme=_scaled(row["local_nvme_tb"], 10**12),
            inter_node_gbit_s=number(row["inter_node_gbit_s"]),
            nic=row["nic"],
            source=row["source"],
        )
        for row in rows("nodes")
    }


@cache
def _by_name() -> dict[str, Node]:
    return index(nodes().values(), lambda node: [node.name])


def find_node(name: str) -> Node | None:
    """The node of that name, upper and lower case alike."""
    return _by_name().get(name.lower())


def nearest_nodes(name: str) -> list[str]:
    """Names to suggest for one that is unknown."""
    return nearest(name, nodes())
