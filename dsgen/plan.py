"""The plan: one fully decided layout; and wishes: what of it somebody has fixed already."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

Device = Literal["none", "cpu", "nvme"]
Precision = Literal["fp32", "fp16", "bf16"]
CheckpointingKind = Literal["none", "full", "selective", "every", "core_attention", "core_attention_mlp"]


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Activation checkpointing of the decoder blocks.

    ``full`` recomputes every block from its input; ``every`` n recomputes every n-th block only;
    ``selective`` recomputes the core attention and the cheap element-wise parts inside each block
    (what is kept are the outputs of matrix products and of the attention kernel). ``core_attention`` and
    ``core_attention_mlp`` are Megatron's: what it recomputes is in the name. A spec can't ask for them yet.
    """

    kind: CheckpointingKind = "none"
    every: int = 1
    """Only for ``every``: one block in this many is checkpointed."""

    def __str__(self) -> str:
        return f"every {self.every}" if self.kind == "every" else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Sizes of communication and working buffers, in elements (not bytes)."""

    reduce: int
    """Gradients reduced in one collective (reduce_bucket_size)."""
    allgather: int
    """Parameters gathered in one collective after the step, stages 1 and 2 (allgather_bucket_size; even)."""
    prefetch: int
    """Parameters fetched ahead at stage 3 (stage3_prefetch_bucket_size)."""
    max_live_parameters: int
    """Upper bound of gathered parameters at stage 3."""
    max_reuse_distance: int
    """Parameters reused within this many elements stay gathered at stage 3."""
    persistence_threshold: int
    """Parameters smaller than this are never partitioned at stage 3."""
    sub_group_size: int
    """Elements stepped at a time by the stage 3 optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Host buffers of the offload, per rank; sizes in elements. The defaults are DeepSpeed's
    (deepspeed/runtime/zero/offload_config.py)."""

    pin_memory: bool = True
    """Page-locked host buffers; DeepSpeed's default is true since 0.19.5."""
    optimizer_buffers: int = 4
    """offload_optimizer.buffer_count: each holds one sub-group in fp32, nvme only."""
    parameter_buffers: int = 5
    """offload_param.buffer_count, nvme only."""
    parameter_buffer_size: int = 100_000_000
    """offload_param.buffer_size, nvme only; must hold the largest parameter shard of a rank."""
    max_in_cpu: int = 1_000_000_000
    """offload_param.max_in_cpu: elements of the parameters that stay in RAM, nvme only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPP:
    """ZeRO++: less traffic between nodes at stage 3 (arXiv 2306.10209)."""

    quantized_weights: bool = False
    """qwZ: weights are gathered in 8 bits, so what is computed with is rounded."""
    quantized_gradients: bool = False
    """qgZ: gradients are reduced in 4 bits, by all-to-all."""
    secondary_partition: int = 1
    """hpZ: ranks over which a second 16-bit copy of the weights lies, from which the backward pass gathers; 1: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One fully decided layout; a frozen value that formats write and the ledger accounts for."""

    world_size: int
    """Processes = GPUs in all."""
    gpus_per_node: int
    zero_stage: int
    """0 replicates everything, 1 shards optimizer states, 2 gradients too, 3 parameters too."""
    precision: Precision
    """Compute type; fp16 and bf16 keep fp32 master weights."""
    checkpointing: Checkpointing
    micro_batch: int
    """Sequences per rank in one forward pass."""
    accumulation: int
    """Micro-batches per optimizer step."""
    buckets: Buckets
    shard_group: int | None = None
    """Ranks that share one copy of the sharded states; None means all data-parallel ranks."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    virtual_stages: int = 1
    """Chunks of layers that each pipeline rank holds (interleaved schedule); Megatron only."""
    context_parallel: int = 1
    ulysses: int = 1
    """Ranks over which Ulysses splits each sequence."""
    expert_parallel: int = 1
    offload_optimizer: Device = "none"
    offload_parameters: Device = "none"
    offload_activations: bool = False
    overlap_comm: bool | None = None
    """Reduce gradients while the backward pass runs; None: DeepSpeed's default, at stage 3 only."""
    swap: Swap = Swap()
    zeropp: ZeroPP = ZeroPP()
    reduce_each_micro_batch: bool = False
    """FSDP2 with accumulation: gradients are reduced after every micro-batch, rather than kept whole until the last."""
    gradient_precision: Precision | None = None
    """Type in which the gradients of several micro-batches are added up; None: the compute type.

    A sum in bf16 keeps 8 bits (dsgen/legality/gradient_sums.py). DeepSpeed's data_types.grad_accum_dtype
    (deepspeed/runtime/engine.py:get_data_types); FSDP2's MixedPrecisionPolicy.reduce_dtype, where dsgen writes fp32.
    """

    @property
    def overlaps(self) -> bool:
        """overlap_comm as it acts: with ZeRO only (deepspeed/runtime/zero/config.py:overlap_comm_valid)."""
        if not self.zero_stage:
            return False
        return self.zero_stage == 3 if self.overlap_comm is None else self.overlap_comm

    @property
    def sums_apart(self) -> bool:
        """Whether gradients are added up in a type of their own, beside those that a backward pass computes."""
        return self.gradient_precision not in (None, self.precision)

    @property
    def has_bf16_optimizer(self) -> bool:
        """Whether DeepSpeed steps with BF16_Optimizer, which keeps fp32 gradients whole on every rank, in place of
        ZeRO's stage 1 (deepspeed/runtime/engine.py:_do_optimizer_sanity_check)."""
        bf16_in_fp32 = self.precision == "bf16" and self.gradient_precision == "fp32"
        return self.zero_stage == 1 and bf16_in_fp32 and self.offload_optimizer == "none"

    @property
    def data_parallel(self) -> int:
        """Ranks that see different data = world size without the tensor, pipeline, context and Ulysses ranks."""
        return self.world_size // (self.tensor_parallel * self.pipeline_parallel * self.context_parallel * self.ulysses)

    @property
    def shards(self) -> int:
        """Ranks over which ZeRO shards the states. Sequence-parallel ranks hold the same weights, so they shard too."""
        if self.shard_group is not None:
            return self.shard_group
        return self.world_size // (self.tensor_parallel * self.pipeline_parallel)

    @property
    def global_batch(self) -> int:
        """Sequences per optimizer step over all ranks."""
        return self.micro_batch * self.accumulation * self.data_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWishes:
    """Sizes that are fixed; ``None`` is open. Field names are those of Buckets."""

    reduce: int | None = None
    allgather: int | None = None
    prefetch: int | None = None
    max_live_parameters: int | None = None
    max_reuse_distance: int | None = None
    persistence_threshold: int | None = None
    sub_group_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapWishes:
    """Host buffers that are fixed; ``None`` is open. Field names are those of Swap."""

    pin_memory: bool | None = None
    optimizer_buffers: int | None = None
    parameter_buffers: int | None = None
    parameter_buffer_size: int | None = None
    max_in_cpu: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """A partial plan: what is fixed; ``None`` is open. Field names are those of Plan."""

    zero_stage: int | None = None
    precision: Precision | None = None
    checkpointing: Checkpointing | None = None
    micro_batch: int | Literal["max"] | None = None
    accumulation: int | None = None
    shard_group: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    ulysses: int | None = None
    expert_parallel: int | None = None
    offload_optimizer: Device | None = None
    offload_parameters: Device | None = None
    offload_activations: bool | None = None
    zeropp: ZeroPP | None = None
    overlap_comm: bool | None = None
    gradient_precision: Precision | None = None
    reduce_each_micro_batch: bool | None = None
    buckets: BucketWishes = BucketWishes()
    swap: SwapWishes = SwapWishes()


def obeyed(plan: Plan, wishes: Wishes) -> Plan:
    """The plan with everything that the wishes fix; the rest stays. ``max`` fixes no micro-batch."""
    fixed = _fixed(wishes)
    if fixed.get("micro_batch") == "max":
        del fixed["micro_batch"]
    fixed["buckets"] = replace(plan.buckets, **_fixed(wishes.buckets))
    fixed["swap"] = replace(plan.swap, **_fixed(wishes.swap))
    return replace(plan, **fixed)


def _fixed(wishes: Wishes | BucketWishes | SwapWishes) -> dict[str, Any]:
    values = {field.name: getattr(wishes, field.name) for field in fields(wishes)}
    return {name: value for name, value in values.items() if value is not None}
