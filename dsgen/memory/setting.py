"""What every formula of the ledger needs of one plan, worked out once."""

from dataclasses import dataclass
from math import ceil

from dsgen.facts.optimizers import OptimizerFacts, find_optimizer
from dsgen.hardware import Hardware
from dsgen.memory import auto_tp
from dsgen.memory.sub_groups import sub_groups
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target

FP32 = 4
"""Bytes of one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One plan with its model, training and machines, and the numbers derived from them."""

    plan: Plan
    shapes: Shapes
    training: Training
    hardware: Hardware
    target: Target
    sequence_length: int
    optimizer: OptimizerFacts
    width: int
    """Bytes of one compute element: 2 for bf16 and fp16, 4 for fp32. A backward pass computes gradients in it."""
    tokens: int
    """Tokens of one micro-batch on one rank: b s, divided by the ranks that split the sequence."""
    parameters: int
    """All parameters of one rank before sharding."""
    trainable: int
    shards: int
    """Ranks over which ZeRO shards, 1 at stage 0."""
    sub_groups: tuple[int, ...]
    """Elements of the groups that the stage 3 optimizer steps one after the other; empty below stage 3."""

    @property
    def stage(self) -> int:
        return self.plan.zero_stage

    @property
    def frozen(self) -> int:
        return self.parameters - self.trainable

    @property
    def mixed(self) -> bool:
        """Whether fp32 is at work beside a 16-bit compute type."""
        return self.width < FP32

    @property
    def master_width(self) -> int:
        """Bytes of one master weight under DeepSpeed and of each of its states: 4, or those of the compute type
        (bf16_master_weights_and_grads, bf16_optimizer_states)."""
        return self.width if self.training.code.weights_in_compute_type else FP32

    @property
    def sum_width(self) -> int:
        """Bytes of one element of the sum of several micro-batches' gradients: those of the compute type, or 4."""
        return FP32 if self.plan.sums_apart else self.width

    @property
    def offloads_optimizer(self) -> bool:
        return self.plan.offload_optimizer != "none"

    @property
    def offloads_parameters(self) -> bool:
        return self.plan.offload_parameters != "none"

    @property
    def ranks_per_node(self) -> int:
        return min(self.plan.gpus_per_node, self.plan.world_size)

    @property
    def nodes(self) -> int:
        return ceil(self.plan.world_size / self.plan.gpus_per_node)

    @property
    def trainable_shard(self) -> int:
        """Trainable parameters of one shard: ceil(T / N)."""
        return ceil(self.trainable / self.shards)

    @property
    def sub_group(self) -> int:
        """Elements of the largest group that the stage 3 optimizer steps at a time."""
        return max(self.sub_groups, default=0)


def setting_of(
    plan: Plan, shapes: Shapes, training: Training, sequence_length: int, hardware: Hardware, target: Target
) -> Setting:
    """The setting of one plan. An optimizer without a row in optimizers.csv counts as AdamW."""
    model_ranks = plan.tensor_parallel * plan.pipeline_parallel
    sequence_ranks = plan.context_parallel * plan.ulysses
    if training.code.sequence_parallel and target.format != "megatron":
        # Tensor-parallel ranks split heads, MLP and vocabulary, and the sequence in between: all that grows with
        # tokens.
        sequence_ranks *= plan.tensor_parallel
    shards = plan.shards if plan.zero_stage else 1
    groups = sub_groups(shapes, shards * model_ranks, plan.buckets.sub_group_size) if plan.zero_stage == 3 else ()
    parameters, trainable = ceil(shapes.parameters / model_ranks), ceil(shapes.trainable / model_ranks)
    if auto_tp.acts(plan, target):
        parameters, trainable = auto_tp.parameters_of_rank(shapes, plan.tensor_parallel)
    optimizer = find_optimizer(training.optimizer.type) or find_optimizer("adamw")
    assert optimizer is not None, "optimizers.csv has a row for adamw"
    return Setting(
        plan=plan,
        shapes=shapes,
        training=training,
        hardware=hardware,
        target=target,
        sequence_length=sequence_length,
        optimizer=optimizer,
        width=FP32 if plan.precision == "fp32" else 2,
        tokens=ceil(plan.micro_batch * sequence_length / sequence_ranks),
        parameters=parameters,
        trainable=trainable,
        shards=shards,
        sub_groups=groups,
    )
