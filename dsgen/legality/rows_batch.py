"""The three batch sizes must agree: global batch = micro-batch x accumulation x data-parallel ranks."""

from dsgen.legality.values import Case, Row


def _misses_global_batch(case: Case) -> bool:
    wanted = case.training.global_batch
    return wanted is not None and case.plan.global_batch != wanted


ROWS = (
    Row(
        name="global-batch-not-met",
        formats=("deepspeed", "fsdp2"),
        forbidden=_misses_global_batch,
        why=(
            "micro-batch {micro_batch} x accumulation {accumulation} x {data_parallel} data-parallel ranks is "
            "{global_batch}, not the global batch asked for"
        ),
        # DeepSpeed stops on a train_batch_size that is not their product; the loop for FSDP2 would step after it.
        source="deepspeed/runtime/config.py:_batch_assertion; dsgen itself: templates/fsdp2/train.py.j2",
        fields=("micro_batch", "accumulation"),
    ),
)
