"""What a smoke run is asked, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dsgen.plan import Checkpointing
from dsgen.smoke.change import Change
from dsgen.smoke.proof.values import Equality

Config = Mapping[str, Any]
DeviceName = Literal["cpu", "cuda"]
Outcome = Literal["ran", "unequal", "failed", "killed", "timed out", "refused"]
Format = Literal["deepspeed", "fsdp2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine and this Python, as a worker found them."""

    device: DeviceName
    devices: int
    """GPUs; 0 on a CPU."""
    device_name: str | None
    fp16: bool
    """Whether fp16 can train here."""
    libaio: bool | None
    """Whether NVMe offload can be built; None: nobody asked."""
    python: str
    torch: str
    deepspeed: str | None
    """None: nobody asked."""
    libraries: tuple[str, ...]
    """Where torch and deepspeed lie: part of the key of built ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What the Trainer fills into "auto"; the defaults are those of transformers.TrainingArguments."""

    bf16: bool | None = None
    """None: not known, so taken from which of the two sections the file has."""
    fp16: bool | None = None
    learning_rate: float = 5e-5
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    micro_batch: int = 8
    accumulation: int = 1
    warmup_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One config to run, as its user wrote it or as dsgen would write it."""

    name: str
    """As named on the command line."""
    config: Config
    decoder: str
    """Source of the model's module."""
    family: str
    checkpointing: Checkpointing = Checkpointing()
    filling: Filling | None = None
    """What fills "auto"; None where DeepSpeed itself loads the file, which fills nothing."""
    notes: tuple[str, ...] = ()
    format: Format = "deepspeed"
    folder: Path | Mapping[str, str] | None = None
    """The folder that was named; or what build would write there, by relative path. None: a config alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run, whatever the config."""

    processes: int | None = None
    """None: one per GPU, two on a CPU."""
    steps: int = 3
    timeout: float = 120.0
    """Seconds that one config may take."""
    build_timeout: float = 600.0
    """Seconds that building the ops may take, all together."""
    device: Literal["auto", "cpu"] = "auto"
    proof: bool | None = None
    """Compare with a plain loop; None: on CPUs."""
    native_ops: bool = False
    """Keep optimizers that need a C++ extension instead of taking torch's."""
    seed: int = 0
    logs: Path | None = None
    """Folder that keeps logs and adapted configs; None: a temporary one, kept only if a run fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimizer step; the loss is the mean over micro-steps and ranks."""

    step: int
    loss: float
    gradient_norm: float | None
    """Before clipping; None where DeepSpeed does not compute it (fp32 without ZeRO)."""
    learning_rate: float | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run did not end well."""

    reason: str
    """One line: which rank, doing what, and the exception or signal."""
    rank: int | None = None
    phase: str | None = None
    step: int | None = None
    type: str | None = None
    traceback: tuple[str, ...] = ()
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One start of a folder's train.py by its own launcher."""

    launcher: str
    ok: bool | None
    """None: it could not be tried."""
    losses: tuple[float, ...] = ()
    seconds: float | None = None
    reason: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One real execution of a config, with what was measured."""

    config: str
    outcome: Outcome
    format: Format = "deepspeed"
    family: str | None = None
    device: DeviceName | None = None
    processes: int | None = None
    zero_stage: int | None = None
    """As the engine reports it, not as the config says."""
    parameters: int | None = None
    """Trained parameters of the tiny model."""
    partitioned: int | None = None
    """Parameters that stage 3 keeps in shards, of trained and frozen ones; 0 at lower stages."""
    steps: tuple[Step, ...] = ()
    moved: float | None = None
    """||p - p0|| / ||p0|| of the trained weights after the last step."""
    seconds: float | None = None
    peak_memory_per_rank: tuple[int, ...] = ()
    """Bytes: resident memory on a CPU, allocated by torch on a GPU."""
    peak_reserved_per_rank: tuple[int, ...] = ()
    """Bytes reserved by torch's allocator; GPU only."""
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    error: Failure | None = None
    equal: Equality | None = None
    """None: the run itself did not get so far."""
    script: Script | None = None
    """None: no folder with a launcher was named."""

    @property
    def ok(self) -> bool:
        """Whether it trained, and as a plain loop does where that was asked."""
        return self.outcome == "ran"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All runs of one command."""

    machine: Machine | None
    """None where no process was started (every input was refused)."""
    runs: tuple[Run, ...]
