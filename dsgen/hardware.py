"""The machines: GPU, links, host memory and disks, with the budget that a plan must fit."""

from dataclasses import dataclass

from dsgen.facts.gpus import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a job runs on, looked up and complete; unknown figures are None."""

    gpu: Gpu
    gpus_per_node: int
    nodes: int
    memory_budget: int
    """Whole-GPU bytes that a plan may use (as nvidia-smi counts)."""
    budget_reason: str
    """Where the budget comes from, in words."""
    inter_node_gbit_s: float | None = None
    rdma: bool | None = None
    host_memory: int | None = None
    """Bytes per node; None: unknown, so not checked, and said."""
    nvme_path: str | None = None
    nvme: int | None = None
    """Bytes per node."""
    disk: int | None = None
    """Bytes per node for checkpoints."""
    notes: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        """GPUs in all = processes."""
        return self.gpus_per_node * self.nodes
