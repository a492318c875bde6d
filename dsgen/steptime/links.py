"""How long collectives take, by volume and link.

Symbols: S bytes of the whole tensor, N ranks, M nodes that they span, G ranks of the group in one node, g GPUs of a
node.
"""

from dataclasses import dataclass
from math import ceil

from dsgen.facts.constants import constant
from dsgen.hardware import Hardware
from dsgen.steptime.machine import PCIE

_TREE = 2
"""Nodes over which a tree spares the network against a ring: over more, both carry some 2 S."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Bytes/s that collectives reach."""

    inside: float
    """Of one GPU to its neighbours in the node, one way."""
    node: float
    """Of all network cards of a node, one way."""
    gpus_per_node: int
    """GPUs that the faster links join."""

    def nodes_of(self, ranks: int, stride: int = 1) -> int:
        """Nodes that a group of that many ranks spans, which lie ``stride`` ranks apart."""
        return min(ranks, ceil(ranks * stride / self.gpus_per_node))

    def gather(self, size: float, ranks: int, stride: int = 1) -> float:
        """Seconds of an all-gather, or of a reduce-scatter, of ``size`` bytes in all: S (N - 1) / N over the slowest
        hop of a ring, a GPU's links in its node or a node's network cards, which the groups that its GPUs are in share;
        and a start-up for each step of the ring, or of a tree where that is shorter.

        NCCL has rings alone for both (src/graph/tuning.cc: algorithms other than the ring only for an all-reduce), and
        all but a rank's own part passes each hop, the network's too: nearly S, where a node needs S (M - 1) / M.
        Source: Thakur et al. 2005; NCCL's rings enter a node over every card at once.
        """
        if ranks <= 1 or size <= 0:
            return 0.0
        span = self.nodes_of(ranks, stride)
        groups = min(stride, self.gpus_per_node)
        hop = self.inside if span < ranks else self.node / groups
        if span > 1:
            hop = min(hop, self.node / groups)
        return size * (ranks - 1) / ranks / hop + self._start(span)

    def reduce(self, size: float, ranks: int, stride: int = 1) -> float:
        """Seconds of an all-reduce: a reduce-scatter and an all-gather, unless it spans two nodes. There NCCL takes a
        tree, which goes over the network once with S each way (tuning.cc: ncclTopoTuneModel).
        """
        span = self.nodes_of(ranks, stride)
        if span != _TREE or size <= 0:
            return 2 * self.gather(size, ranks, stride)
        seconds = size / (self.node / min(stride, self.gpus_per_node))
        if span < ranks:
            seconds = max(seconds, 2 * size * (ranks - 1) / ranks / self.inside)
        return seconds + 2 * self._start(span)

    @staticmethod
    def _start(span: int) -> float:
        return constant("collective_start") * (1 + (span > 1) * span.bit_length())

    def exchange(self, size: float, ranks: int, stride: int = 1) -> float:
        """Seconds of an all-to-all in which each rank holds ``size`` bytes, and keeps 1 / N of them.

        Of what leaves a GPU, (N - G) / N goes over its share of the node's network cards.
        """
        if ranks <= 1 or size <= 0:
            return 0.0
        span = self.nodes_of(ranks, stride)
        seconds = size * (ranks - 1) / ranks / self.inside if span < ranks else 0.0
        if span > 1:
            outside = size * (ranks - ranks / span) / ranks
            seconds = max(seconds, outside * self.gpus_per_node / self.node)
        return seconds + constant("collective_start")

    def send(self, size: float, *, apart: bool) -> float:
        """Seconds of one message to one other rank; ``apart``: in another node."""
        rate = self.node / self.gpus_per_node if apart else self.inside
        return size / rate + constant("collective_start")


_CARD = {3: 100.0, 4: 200.0, 5: 400.0, 6: 800.0}
"""Gbit/s of the network card that goes with a GPU of that PCIe generation in NVIDIA's reference nodes (DGX-1V 4 x 100
for 8, DGX A100 8 x 200, DGX H100 8 x 400, DGX B300 8 x 800)."""


def network_of(hardware: Hardware) -> float:
    """Gbit/s of a node: as stated; else a card for each GPU that has fast links, and one for a node of others."""
    if hardware.inter_node_gbit_s:
        return hardware.inter_node_gbit_s
    gpu = hardware.gpu
    each = _CARD.get(gpu.pcie_gen or 4, 200.0)
    return each * hardware.gpus_per_node if (gpu.link_gb_s or 0) > _PCIE_ONLY else each


def links_of(hardware: Hardware) -> Links:
    """Rates: what the vendor states, by the share that collectives reach (link_share, network_share). Cards without
    fast links, bridges that two of them may have left out, pass data through the host's memory, at peer_share of
    PCIe."""
    gpu = hardware.gpu
    fast = gpu.link_domain or hardware.gpus_per_node
    if gpu.link_gb_s is not None and gpu.link_gb_s > _PCIE_ONLY:
        inside = gpu.link_gb_s * constant("link_share")
    else:
        inside = PCIE.get(gpu.pcie_gen or 4, PCIE[4]) * constant("peer_share")
    return Links(
        inside=inside * 1e9,
        node=network_of(hardware) / 8 * 1e9 * constant("network_share") * max(1.0, fast / hardware.gpus_per_node),
        gpus_per_node=min(fast, hardware.world_size),
    )


_PCIE_ONLY = 63.0
"""GB/s: no card is joined faster over PCIe or a bridge."""
