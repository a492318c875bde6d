"""What every formula of the step time needs of one plan, worked out once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.shapes.freeze import leading_frozen
from dsgen.shapes.values import Architecture, Block, Shapes
from dsgen.spec.values import Training
from dsgen.steptime.links import Links, links_of
from dsgen.steptime.machine import Machine, machine_of
from dsgen.target import Target

FP32 = 4
"""Bytes of one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One plan with its model, training and machines, and the numbers derived from them.

    Symbols: b micro-batch, s sequence length, t, p, c, u tensor-, pipeline-, context-parallel and Ulysses ranks.
    """

    plan: Plan
    shapes: Shapes
    training: Training
    hardware: Hardware
    target: Target
    machine: Machine
    links: Links
    sequence_length: int
    width: int
    """Bytes of one compute element."""
    tokens: int
    """Of one micro-batch on one rank: b s / (c u)."""
    between: float
    """Tokens of one rank where tensor-parallel ranks hold alike tensors: tokens, or tokens / t where they split the
    sequence there."""
    parameters: float
    """Of one rank before sharding."""
    trainable: float
    shards: int
    """Ranks over which ZeRO shards, 1 at stage 0."""
    kinds: tuple[tuple[Block, int], ...]
    """Each different block once, and how many layers are such."""
    idle: Mapping[int, int]
    """By a block's id: how many such layers no gradient reaches (dsgen/shapes/freeze.py: leading_frozen)."""

    @property
    def arch(self) -> Architecture:
        return self.shapes.architecture

    @property
    def tensor(self) -> int:
        return self.plan.tensor_parallel

    @property
    def mixed(self) -> bool:
        """Whether fp32 is at work beside a 16-bit compute type."""
        return self.width < FP32 and not self.training.code.weights_in_compute_type

    @property
    def reduce_width(self) -> int:
        """Bytes of one gradient on its way to the other ranks. DeepSpeed's go in the compute type, whatever they are
        added up in (deepspeed/runtime/engine.py: communication_data_type)."""
        if self.target.format == "deepspeed":
            return self.width
        if self.target.format == "megatron" or self.plan.gradient_precision == "fp32":
            return FP32
        return self.width

    @property
    def casts_weights(self) -> bool:
        """Whether weights are fp32 and autocast makes 16-bit ones of them, layer by layer: torch without sharding."""
        return self.mixed and self.target.format == "ddp"

    @property
    def norm_is_one_kernel(self) -> bool:
        fused = self.training.compile or "norm" in self.training.code.fused or self.megatron
        return fused or self.arch.norm == "layernorm"

    @property
    def megatron(self) -> bool:
        return self.target.format == "megatron"


def setting_of(
    plan: Plan, shapes: Shapes, training: Training, sequence_length: int, hardware: Hardware, target: Target
) -> Setting:
    """The setting of one plan."""
    ranks = plan.tensor_parallel * plan.pipeline_parallel
    tokens = ceil(plan.micro_batch * sequence_length / (plan.context_parallel * plan.ulysses))
    return Setting(
        plan=plan,
        shapes=shapes,
        training=training,
        hardware=hardware,
        target=target,
        machine=machine_of(hardware.gpu, plan.precision, compiled=training.compile),
        links=links_of(hardware),
        sequence_length=sequence_length,
        width=FP32 if plan.precision == "fp32" else 2,
        tokens=tokens,
        between=tokens / plan.tensor_parallel if training.code.sequence_parallel else tokens,
        parameters=shapes.parameters / ranks,
        trainable=shapes.trainable / ranks,
        shards=plan.shards if plan.zero_stage else 1,
        kinds=tuple((block, shapes.order.count(position)) for position, block in enumerate(shapes.kinds)),
        idle=Counter(map(id, shapes.blocks[: leading_frozen(shapes)])),
    )
