"""Buffer sizes that DeepSpeed does not take."""

from dsgen.legality.values import Row

ROWS = (
    Row(
        name="odd-allgather-bucket",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.zero_stage in (1, 2) and case.plan.buckets.allgather % 2 == 1,
        why=(
            "at stages 1 and 2 allgather_bucket_size must be even, not {buckets.allgather}: DeepSpeed asserts that its "
            "all-gathers start at 4-byte boundaries; use one element more"
        ),
        source="deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer (nccl_start_alignment_factor)",
        fields=("buckets",),
    ),
)
