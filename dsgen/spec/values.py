"""What spec.yaml says, checked and typed; nothing looked up or decided yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dsgen.errors import Place

KeyPath = tuple[str | int, ...]

Attention = Literal["eager", "sdpa", "flash"]
Loss = Literal["full", "fused", "chunked", "fused_linear", "classification"]
"""fused: one kernel over whole logits; classification: of whole sequences, with few classes. A spec may not ask for
these two, measured runs do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSizes:
    """A model given by numbers; what is None is inferred and said."""

    parameters: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    vocab: int | None = None
    tied: bool | None = None
    max_positions: int | None = None
    mlp: str | None = None
    """swiglu (default), geglu, gelu or relu."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Exactly one of the three is set."""

    name: str | None = None
    """A preset's name or a Hugging Face id."""
    path: Path | None = None
    """A folder with a Hugging Face config.json, or that file, made absolute against the spec's folder."""
    sizes: ModelSizes | None = None
    factory: str | None = None
    """package.module:function that makes the model which ``sizes`` describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNumbers:
    """A GPU given by numbers rather than by name; unknown figures are None."""

    memory: int
    """Usable bytes."""
    bf16_tflops: float | None = None
    """Dense; None means that the card has no native bf16."""
    fp16_tflops: float | None = None
    fp32_tflops: float | None = None
    memory_bandwidth_gb_s: float | None = None
    link_gb_s: float | None = None
    """One way, between GPUs of a node."""
    compute_capability: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """Between nodes."""

    gbit_s: float | None = None
    rdma: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmeSpec:
    """Local NVMe drives of each node."""

    path: str | None = None
    size: int | None = None
    """Bytes per node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareSpec:
    """As written; dsgen.hardware looks the names up and fills what a node preset knows."""

    node: str | None = None
    gpu: str | GpuNumbers | None = None
    gpus_per_node: int | None = None
    nodes: int = 1
    interconnect: Interconnect = Interconnect()
    host_memory: int | None = None
    """Bytes per node."""
    nvme: NvmeSpec | None = None
    disk: int | None = None
    """Bytes per node, for checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Optimizer and its hyper-parameters, by the names of torch.optim."""

    type: str = "adamw"
    """Lower case: adamw, adam, sgd."""
    lr: float = 2e-5
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    """sgd only."""
    step: Literal["fused", "foreach", "in_backward"] = "fused"
    """How it steps: one kernel in place; by tensor operations over all parameters at once; or each parameter as
    soon as its gradient is there, so that gradients never live together. Writers write fused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Learning-rate schedule, stepped once per optimizer step."""

    type: str = "cosine"
    """constant, linear or cosine, each after a linear warm-up."""
    warmup_steps: int = 0
    total_steps: int | None = None
    min_lr_ratio: float = 0.0
    """Last learning rate divided by the peak (cosine and linear)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What is trained: all weights, or low-rank adapters beside frozen ones."""

    type: Literal["full", "lora"] = "full"
    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the linear layers that get adapters, or "all-linear": all but the output head."""
    quantization: str | None = None
    """How frozen linear layers are stored, a name of dsgen/facts/quantizations.csv: QLoRA; None: in the compute
    type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Something else that lives on every card while it is trained: a model that is only read, or a program."""

    what: str
    """Its role or its name, for notes."""
    model: str | None = None
    """same, or a preset; None for a program."""
    parameters: int | None = None
    """Of the preset; None: as many as the trained model has without adapters."""
    reserve: int = 0
    """Bytes of each card that a program takes."""
    share: float = 0.0
    """The same as a share of what the card has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What the code that trains does, where memory depends on it. The defaults are what dsgen generates, with what
    ``compile`` makes of it; measured runs say otherwise, a spec may not yet."""

    library: Literal["transformers", "litgpt", "torchtitan", "torchtune", "megatron", "foundry"] = "transformers"
    """Whose model and loss it is."""
    fused: frozenset[str] = frozenset()
    """Kernels that keep less than tensor operations do: norm, mlp, loss; tiled_mlp cuts the sequence."""
    weights_in_compute_type: bool = False
    """Trained weights, their gradients and states in the compute type, without an fp32 copy. Torch's own
    frameworks only; DeepSpeed keeps master weights."""
    autocast: bool = False
    """Weights are stored as they are and cast where they are used."""
    loss_in_fp32: bool = True
    """Logits are cast to fp32 before the loss."""
    keeps_logits: bool = False
    """A variable holds the logits while the backward pass runs."""
    reentrant: bool = False
    """Checkpointing by CheckpointFunction (use_reentrant), transformers' default until version 5."""
    sequence_parallel: bool = False
    """Tensor-parallel ranks also split what lies between the matrix products."""
    last_rank: bool = False
    """The figure wanted is that of the last pipeline stage, not of the fullest rank."""
    dropout: bool | None = None
    """Residual and attention dropout; None: as the model was published."""
    lengths_vary: bool = False
    """Samples are padded to the longest of their batch only, so that every step asks for blocks of other sizes."""
    expandable_segments: bool = False
    """The allocator's segments grow (PYTORCH_CUDA_ALLOC_CONF), so that what is free in one stream can be used again."""
    embedding_apart: bool = False
    """FSDP2 shards the embedding, and the output head with the last norm, as units of their own."""
    first_flash: bool = False
    """Its flash attention is of the first generation, of before July 2023."""
    deterministic: bool = False
    """Only kernels whose results are the same in every run."""
    eight_bit: Literal["", "tensorwise", "rowwise", "mx"] = ""
    """Linear layers multiply in fp8, with one scale for each tensor, each row, or each 32 elements (MX); what lies
    between them stays in the compute type."""
    hides_tensor_parallel: bool = False
    """Traffic of tensor parallelism runs beside the products that need it (async TP, Transformer Engine's overlap)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How it is trained; what is None is decided later, and said."""

    sequence_length: int | None = None
    """Tokens per sequence; None: see dsgen.shapes.resolve.sequence_length_of."""
    longest: bool = False
    """As many tokens per sequence as fit (``sequence_length: max``); the planner finds out how many."""
    global_batch: int | None = None
    """Sequences per optimizer step; None: whatever micro-batch times ranks gives."""
    global_tokens: int | None = None
    """Tokens per optimizer step, instead of global_batch."""
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    optimizer: Optimizer = Optimizer()
    scheduler: Scheduler | None = None
    gradient_clipping: float = 1.0
    """Largest gradient norm; 0 turns clipping off."""
    method: Method = Method()
    freeze: tuple[str, ...] = ()
    """Patterns of parameter names that are not trained (dsgen/shapes/freeze.py)."""
    attention: Attention = "sdpa"
    loss: Loss = "full"
    compile: bool = False
    code: Code = Code()
    residents: tuple[Resident, ...] = ()
    """What else lives on the cards; a key of its own in spec.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """Who the files are written for, as written."""

    format: str = "deepspeed"
    loaded_by: str = "deepspeed"
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A whole spec.yaml."""

    file: str
    """As the user named it, for messages."""
    model: ModelSpec
    hardware: HardwareSpec
    memory_budget: int | None = None
    """Whole-GPU bytes; None: what the card has, less a stated reserve."""
    training: Training = Training()
    want: Mapping[str, object] = field(default_factory=dict)
    """Typed values under the names of dsgen.plan.Wishes; checkpointing stays a string or {"every": n}."""
    target: TargetSpec = TargetSpec()
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    """Key path to the place of its value."""

    def place(self, *path: str | int) -> Place:
        """Where the value at ``path`` stands, or the nearest parent that the user wrote."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file))
