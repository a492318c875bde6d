"""The ledger's form: bytes by named part, by place and by moment; the peak is the largest moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Part = Literal[
    "parameters",
    "gradients",
    "master_weights",
    "optimizer_states",
    "gathered_parameters",
    "activations",
    "logits",
    "buffers",
    "temporaries",
    "residents",
    "framework",
]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, slots=True)
class Moment:
    """What is alive at one moment of a steady training step, bytes per part; absent parts are zero."""

    name: str
    """end of forward, backward, optimizer step."""
    parts: Mapping[Part, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAccount:
    """Bytes on one GPU, the fullest rank.

    ``framework`` in the moments holds what no tensor owns: CUDA context, NCCL and cuBLAS
    workspaces, and what the caching allocator can't give back when memory is short. So the peak
    moment's total is what the GPU must have. Where the card has more, the allocator caches
    more: ``reserved`` and ``whole_gpu`` are the figures that are seen then.
    """

    moments: tuple[Moment, ...]
    allocated: int
    """torch.cuda.max_memory_allocated: tensors only, at the largest moment."""
    reserved: int
    """torch.cuda.max_memory_reserved, as far as the card has room."""
    whole_gpu: int
    """What nvidia-smi shows: reserved, and what is outside the allocator; at least the peak."""
    low: int
    high: int
    """Band of the peak."""

    @property
    def peak_moment(self) -> Moment:
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def peak(self) -> int:
        return self.peak_moment.total


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesClassic:
    """The textbook account per GPU (ZeRO paper, arXiv 1910.02054): 2 + 2 + 12 bytes a parameter for
    mixed precision with Adam, before anything a framework adds."""

    parameters: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """One plan's bytes everywhere."""

    device: DeviceAccount
    host_per_node: Mapping[str, int]
    """Named parts on the host; their sum is what a node's RAM must hold."""
    nvme_per_node: Mapping[str, int]
    disk: Mapping[str, int]
    """One checkpoint, whole job: weights and optimizer states."""
    states_classic: StatesClassic
    notes: tuple[str, ...] = ()
    """What the figures leave out or assume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a ledger fits the hardware, and if not, where it overflows."""

    fits: bool
    tight: bool
    """It fits, with less than a tenth of the budget to spare above the expected figure's band."""
    overflows: tuple["Overflow", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """One place that is too small."""

    place: Literal["device", "host", "nvme", "disk"]
    needed: int
    available: int
    largest_part: str
    largest_part_bytes: int
    moment: str | None = None

    @property
    def by(self) -> int:
        return self.needed - self.available
