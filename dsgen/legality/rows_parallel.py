"""How the ranks may be split by DeepSpeed, and by whom."""

from dsgen.legality.values import Case, Row
from dsgen.shapes.values import Architecture

_ONLY = ("deepspeed",)


def _model_ranks(case: Case) -> int:
    plan = case.plan
    return plan.tensor_parallel * plan.pipeline_parallel * plan.context_parallel * plan.ulysses


def _is_not_written(case: Case) -> bool:
    plan = case.plan
    return plan.pipeline_parallel > 1 or plan.context_parallel > 1 or plan.expert_parallel > 1


def _has_shard_group(case: Case) -> bool:
    plan = case.plan
    everyone = plan.world_size // (plan.tensor_parallel * plan.pipeline_parallel)
    return plan.shard_group is not None and plan.shard_group != everyone


def _splits(case: Case) -> bool:
    """Whether matrices or sequences are split."""
    return case.plan.tensor_parallel > 1 or case.plan.ulysses > 1


def _cuts_heads(case: Case) -> bool:
    arch, size = case.shapes.architecture, case.plan.tensor_parallel
    return size > 1 and any(number % size for number in (arch.heads, arch.kv_heads, arch.intermediate))


def _ulysses_cuts_heads(case: Case) -> bool:
    arch, size = case.shapes.architecture, case.plan.ulysses
    return arch.heads % size != 0 or not _one_divides_the_other(arch, size)


def _one_divides_the_other(arch: Architecture, size: int) -> bool:
    return arch.kv_heads % size == 0 or size % arch.kv_heads == 0


ROWS = (
    Row(
        name="ranks-not-divisible",
        formats=_ONLY,
        forbidden=lambda case: case.plan.world_size % _model_ranks(case) != 0,
        why=(
            "{world_size} GPUs can't be split into tensor {tensor_parallel} x pipeline {pipeline_parallel} x context "
            "{context_parallel} x Ulysses {ulysses} ranks; their product must divide the number of GPUs"
        ),
        source="deepspeed/runtime/pipe/topology.py:ProcessTopology; deepspeed/utils/groups.py:_ensure_divisibility",
        fields=("tensor_parallel", "pipeline_parallel", "context_parallel", "ulysses"),
    ),
    Row(
        name="pipeline-with-zero-2-or-3",
        formats=_ONLY,
        forbidden=lambda case: case.plan.pipeline_parallel > 1 and case.plan.zero_stage >= 2,
        why="DeepSpeed's pipeline engine takes ZeRO stages 0 and 1 only; use zero_stage 1, or no pipeline",
        source="deepspeed/runtime/pipe/engine.py:PipelineEngine",
        fields=("pipeline_parallel", "zero_stage"),
    ),
    Row(
        name="model-parallelism-not-written",
        formats=_ONLY,
        forbidden=_is_not_written,
        why=(
            "dsgen does not write pipeline, context or expert parallelism for DeepSpeed: no key of a config makes a "
            "pipeline of a model, the Trainer runs none, and ring attention is not DeepSpeed's; leave it out of want"
        ),
        source="dsgen itself: dsgen/formats/deepspeed writes no such key",
        fields=("pipeline_parallel", "context_parallel", "expert_parallel"),
    ),
    Row(
        name="split-model-without-trainer",
        formats=_ONLY,
        forbidden=lambda case: _splits(case) and case.target.loaded_by != "transformers",
        why=(
            "the training loop that dsgen writes for DeepSpeed itself splits neither matrices nor sequences; with "
            "target.loaded_by: transformers the Trainer does, for tensor_parallel by AutoTP and for ulysses by a "
            "ParallelismConfig"
        ),
        source="dsgen itself: templates/deepspeed/train.py.j2",
        fields=("tensor_parallel", "ulysses"),
    ),
    Row(
        name="tensor-parallel-and-ulysses",
        formats=_ONLY,
        forbidden=lambda case: case.plan.tensor_parallel > 1 and case.plan.ulysses > 1,
        why=(
            "AutoTP takes DeepSpeed's own process groups, Ulysses hands in others: the two do not know each other; use "
            "tensor_parallel or ulysses"
        ),
        source="deepspeed/runtime/engine.py:_configure_tensor_parallel_states (self.mpu = groups)",
        fields=("tensor_parallel", "ulysses"),
    ),
    Row(
        name="tensor-parallel-that-cuts-heads",
        formats=_ONLY,
        forbidden=_cuts_heads,
        why=(
            "tensor parallel {tensor_parallel} does not divide the model's heads, key-value heads and intermediate "
            "size: ranks would hold unequal shares, or none; use a divisor of all three"
        ),
        source=(
            "deepspeed/module_inject/tp_shard.py:get_shard_size; "
            "deepspeed/runtime/engine.py:_apply_autotp_partitioning (exceeds the model's key-value head count)"
        ),
        fields=("tensor_parallel",),
    ),
    Row(
        name="tensor-parallel-at-stage-3",
        formats=_ONLY,
        forbidden=lambda case: case.plan.tensor_parallel > 1 and case.plan.zero_stage == 3,
        why="before 0.19.4 DeepSpeed refuses AutoTP at ZeRO stage 3; use zero_stage 2, or a newer DeepSpeed",
        source="deepspeed/runtime/engine.py:_configure_tensor_parallel (0.19.3: 'has not been validated')",
        until="0.19.4",
        fields=("tensor_parallel", "zero_stage"),
    ),
    Row(
        name="tensor-parallel-of-adapters-or-experts",
        formats=_ONLY,
        forbidden=lambda case: (
            case.plan.tensor_parallel > 1
            and (case.training.method.type != "full" or case.shapes.architecture.moe is not None)
        ),
        why=(
            "AutoTP splits the linear layers that a model's own plan names: adapters around them and experts are "
            "others; use method: {{type: full}} and a dense model, or leave tensor_parallel out"
        ),
        source=(
            "deepspeed/module_inject/tp_plan_converter.py:convert; "
            "transformers/integrations/deepspeed.py:_apply_weight_conversions_to_state_dict (NotImplementedError)"
        ),
        fields=("tensor_parallel",),
    ),
    Row(
        name="tensor-parallel-with-offload",
        formats=_ONLY,
        forbidden=lambda case: (
            case.plan.tensor_parallel > 1
            and (case.plan.offload_optimizer, case.plan.offload_parameters) != ("none",) * 2
        ),
        why="dsgen has not seen AutoTP run with offload; leave tensor_parallel out, or keep everything on the GPUs",
        source="dsgen itself: not run",
        fields=("tensor_parallel", "offload_optimizer", "offload_parameters"),
    ),
    Row(
        name="ulysses-that-cuts-heads",
        formats=_ONLY,
        forbidden=_ulysses_cuts_heads,
        why=(
            "Ulysses {ulysses} does not divide the model's heads, or neither divides its key-value heads nor is "
            "divided by them; use a divisor of the heads"
        ),
        source="deepspeed/runtime/sequence_parallel/ulysses_sp.py:UlyssesSPAttentionHF (ValueError)",
        fields=("ulysses",),
    ),
    Row(
        name="ulysses-with-eager-attention",
        formats=_ONLY,
        forbidden=lambda case: case.plan.ulysses > 1 and case.training.attention == "eager",
        why="Ulysses drops the attention mask, without which eager attention is not causal; use sdpa or flash",
        source="deepspeed/runtime/sequence_parallel/ulysses_sp.py:register_with_transformers",
        fields=("ulysses", "attention"),
    ),
    Row(
        name="ulysses-with-sgd",
        formats=_ONLY,
        forbidden=lambda case: (
            case.plan.ulysses > 1 and case.plan.zero_stage < 3 and case.training.optimizer.type.lower() == "sgd"
        ),
        why=(
            "with Ulysses below stage 3 the Trainer's gradients come out {ulysses} times too large, which Adam does "
            "not notice, but SGD would step as many times too far; use adamw or zero_stage 3, or leave ulysses out"
        ),
        source=(
            "transformers/integrations/deepspeed.py:deepspeed_sp_compute_loss (its all_gather sums over ranks on the "
            "way back); deepspeed/runtime/zero/stage_1_and_2.py:average_tensor (and DeepSpeed sums again)"
        ),
        fields=("ulysses", "zero_stage"),
    ),
    Row(
        name="ulysses-before-accelerate-1-12",
        formats=_ONLY,
        forbidden=lambda case: case.plan.ulysses > 1,
        why="Accelerate hands Ulysses to DeepSpeed since 1.12 (sp_backend); leave ulysses out, or use a newer one",
        source="accelerate/parallelism_config.py:ParallelismConfig",
        library="accelerate",
        until="1.12",
        fields=("ulysses",),
    ),
    Row(
        name="split-model-before-transformers-5",
        formats=_ONLY,
        forbidden=_splits,
        why=(
            "before 5.0 the Trainer counts batches without the ranks that share one; leave tensor_parallel and ulysses "
            "out, or use a newer transformers"
        ),
        source="transformers/trainer.py:Trainer (get_tp_size, get_sp_size)",
        library="transformers",
        until="5.0",
        fields=("tensor_parallel", "ulysses"),
    ),
    Row(
        name="shard-group-in-deepspeed",
        formats=_ONLY,
        forbidden=_has_shard_group,
        why=(
            "DeepSpeed's ZeRO shards over all data-parallel ranks: it has no shard group of {shard_group} (MiCS, which "
            "had, is gone since 0.19.7; zero_hpz_partition_size adds a second copy rather than a smaller group); "
            "leave shard_group out"
        ),
        source="deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig",
        fields=("shard_group",),
    ),
)
