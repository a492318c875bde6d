"""How the ranks may be split."""

from dsgen.legality.values import Case, Row


def _model_ranks(case: Case) -> int:
    plan = case.plan
    return plan.tensor_parallel * plan.pipeline_parallel * plan.context_parallel * plan.ulysses


def _is_not_written(case: Case) -> bool:
    return _model_ranks(case) > 1 or case.plan.expert_parallel > 1


def _has_shard_group(case: Case) -> bool:
    plan = case.plan
    everyone = plan.world_size // (plan.tensor_parallel * plan.pipeline_parallel)
    return plan.shard_group is not None and plan.shard_group != everyone


ROWS = (
    Row(
        name="ranks-not-divisible",
        formats=("deepspeed",),
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
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.pipeline_parallel > 1 and case.plan.zero_stage >= 2,
        why="DeepSpeed's pipeline engine takes ZeRO stages 0 and 1 only; use zero_stage 1, or no pipeline",
        source="deepspeed/runtime/pipe/engine.py:PipelineEngine",
        fields=("pipeline_parallel", "zero_stage"),
    ),
    Row(
        name="model-parallelism-not-written",
        formats=("deepspeed",),
        forbidden=_is_not_written,
        why=(
            "dsgen does not write tensor, pipeline, context, Ulysses or expert parallelism for DeepSpeed yet; leave it "
            "out of want"
        ),
        source="dsgen itself: dsgen/formats/deepspeed writes no such key",
        fields=("tensor_parallel", "pipeline_parallel", "context_parallel", "ulysses", "expert_parallel"),
    ),
    Row(
        name="shard-group-in-deepspeed",
        formats=("deepspeed",),
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
