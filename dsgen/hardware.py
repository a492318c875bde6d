"""The machines: GPU, links, host memory and disks, with the budget that a plan must fit."""

from dataclasses import dataclass, replace

from dsgen.errors import InputError, Problem, RefusedError
from dsgen.facts.constants import constant
from dsgen.facts.gpus import Gpu, find_gpu, nearest_gpus
from dsgen.facts.nodes import Node, find_node, nearest_nodes
from dsgen.spec.values import GpuNumbers, NvmeSpec, Spec
from dsgen.spec.words import dotted, listed, shown
from dsgen.units import GIB, format_bytes


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


def hardware_of(spec: Spec) -> Hardware:
    """Looks up what the spec names; what it states beside a node preset overrides that preset.

    Raises InputError for an unknown name or a contradiction, RefusedError for a budget that the card has not.
    """
    stated, problems = spec.hardware, list[Problem]()
    node = _node(spec, problems)
    gpu = _gpu(spec, node, problems)
    if problems or gpu is None:
        raise InputError(*problems)
    network, nvme = stated.interconnect, stated.nvme or NvmeSpec()
    notes = []
    if stated.gpus_per_node is None and node is None:
        notes.append("The spec names a GPU but not gpus_per_node: one GPU per node is assumed.")
    if isinstance(stated.gpu, GpuNumbers) and not gpu.has_bf16:
        notes.append("The GPU's numbers have no bf16_tflops: it is taken for a card without native bf16.")
    notes += _unused(spec)
    budget, reason = _budget(spec, gpu)
    return Hardware(
        gpu=gpu,
        gpus_per_node=stated.gpus_per_node or (node.gpus if node else 1),
        nodes=stated.nodes,
        memory_budget=budget,
        budget_reason=reason,
        inter_node_gbit_s=network.gbit_s or (node.inter_node_gbit_s if node else None),
        rdma=node.rdma if node and network.rdma is None else network.rdma,
        host_memory=stated.host_memory or (node.host_memory if node else None),
        nvme_path=nvme.path,
        # A folder on a node without local drives is on some other kind of disk, of a size that we do not know.
        nvme=nvme.size or (node.local_nvme if node else None) or None,
        disk=stated.disk,
        notes=tuple(notes),
    )


_RDMA = ("hardware", "interconnect", "rdma")


def _unused(spec: Spec) -> list[str]:
    """Nothing that is written is ignored without a word."""
    if _RDMA not in spec.places:
        return []
    return [f"{dotted(_RDMA)} changed nothing: a network is taken to be as fast as stated, with or without."]


def _node(spec: Spec, problems: list[Problem]) -> Node | None:
    name, wanted = spec.hardware.node, spec.hardware.gpus_per_node
    if name is None:
        return None
    node = find_node(name)
    if node is None:
        problems.append(_unknown(spec, "node", name, nearest_nodes(name)))
    elif wanted is not None and wanted > node.gpus:
        place = spec.place("hardware", "gpus_per_node")
        problems.append(Problem(f"{node.name} has {node.gpus} GPUs, not {wanted}", place, f"at most {node.gpus}"))
    return node


def _gpu(spec: Spec, node: Node | None, problems: list[Problem]) -> Gpu | None:
    stated = spec.hardware.gpu
    preset = find_gpu(node.gpu) if node else None
    if isinstance(stated, GpuNumbers):
        return _with_numbers(preset, stated)
    if stated is None:
        return preset
    gpu = find_gpu(stated)
    if gpu is None:
        problems.append(_unknown(spec, "gpu", stated, nearest_gpus(stated)))
    elif node and preset and gpu != preset:
        message = f"node {node.name} has {preset.name}, not {gpu.name}"
        problems.append(Problem(message, spec.place("hardware", "gpu"), "name the node or the GPU, not both"))
    return gpu


def _with_numbers(preset: Gpu | None, stated: GpuNumbers) -> Gpu:
    """The preset's GPU with what the user states; without a preset, what is not stated is unknown."""
    base = preset or Gpu(
        name="custom",
        memory=stated.memory,
        bf16_tflops=None,
        fp16_tflops=None,
        fp32_tflops=None,
        memory_gb_s=None,
        link_gb_s=None,
    )
    return replace(
        base,
        memory=stated.memory,
        bf16_tflops=stated.bf16_tflops or base.bf16_tflops,
        fp16_tflops=stated.fp16_tflops or base.fp16_tflops,
        fp32_tflops=stated.fp32_tflops or base.fp32_tflops,
        memory_gb_s=stated.memory_bandwidth_gb_s or base.memory_gb_s,
        link_gb_s=stated.link_gb_s or base.link_gb_s,
        compute_capability=stated.compute_capability or base.compute_capability,
        source="the spec",
    )


def _unknown(spec: Spec, key: str, name: str, near: list[str]) -> Problem:
    kind = {"gpu": "GPU"}.get(key, key)
    help = f"dsgen show {key}s lists them all"
    if near:
        help = f"did you mean {listed(near)}? {help}"
    return Problem(f"unknown {kind} {shown(name)}", spec.place("hardware", key), help)


def _budget(spec: Spec, gpu: Gpu) -> tuple[int, str]:
    """The whole-GPU bytes that a plan may use, and why."""
    if spec.memory_budget is None:
        reserve = int(constant("device_reserve"))
        reason = f"{gpu.name}'s {_gib(gpu.memory)} less {format_bytes(reserve)} for what is not ours on the card"
        return max(gpu.memory - reserve, 0), reason
    if spec.memory_budget > gpu.memory:
        message = f"memory_budget {_gib(spec.memory_budget)} is more than {gpu.name} has: {_gib(gpu.memory)} usable"
        hundredths = ((gpu.memory + 1) * 100 - 1) // GIB  # the largest that is read as no more than the card has
        most = f"at most {hundredths / 100:.2f}GiB; left out, it is the card's less a reserve"
        raise RefusedError.at(message, spec.place("memory_budget"), most)
    return spec.memory_budget, "stated in the spec"


def _gib(count: int) -> str:
    """Two decimals: 79.15 GiB and 79.1 GiB are different cards."""
    return f"{count / GIB:.2f} GiB"
