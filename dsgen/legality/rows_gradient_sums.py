"""Types in which gradients of several micro-batches can't be added up."""

from dsgen.legality.values import Case, Row


def _sums_in_fp32(case: Case) -> bool:
    return case.plan.sums_apart and case.plan.gradient_precision == "fp32"


ROWS = (
    Row(
        name="gradient-sums-in-another-16-bit-type",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: case.plan.sums_apart and not _sums_in_fp32(case),
        why=(
            "gradients computed in {precision} gain nothing from being added up in {gradient_precision}; use fp32, or "
            "{precision} itself"
        ),
        source="dsgen itself: dsgen/memory counts sums in fp32 or in the compute type",
        fields=("precision",),
    ),
    Row(
        name="gradient-sums-in-fp32-at-stage-0",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.zero_stage == 0 and _sums_in_fp32(case),
        why=(
            "at ZeRO stage 0 DeepSpeed adds gradients up in the compute type only ('unsupported mix of model_dtype and "
            "grad_accum_dtype'); zero_stage 2 adds them up in fp32, on one GPU too"
        ),
        source="deepspeed/runtime/engine.py:_do_optimizer_sanity_check",
        fields=("zero_stage",),
    ),
    Row(
        name="gradient-sums-in-fp32-ignored-at-stage-2",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.zero_stage == 2 and _sums_in_fp32(case),
        why=(
            "before 0.19.8 DeepSpeed takes grad_accum_dtype fp32 at ZeRO stage 2 and goes on adding gradients in "
            "{precision}; use zero_stage 3, or a newer DeepSpeed"
        ),
        source="deepspeed/runtime/zero/stage_1_and_2.py:get_all_grad_tensors (0.19.0 to 0.19.7)",
        until="0.19.8",
        fields=("zero_stage",),
    ),
    Row(
        name="gradient-sums-in-fp32-ignored-with-muon",
        formats=("deepspeed",),
        forbidden=lambda case: (
            case.plan.zero_stage == 2 and _sums_in_fp32(case) and case.training.optimizer.type.lower() == "muon"
        ),
        why="with Muon, ZeRO stage 2 adds gradients up in {precision} whatever grad_accum_dtype says; use zero_stage 3",
        source="deepspeed/runtime/zero/stage_1_and_2.py:_use_compact_grad_partition_buffer",
        fields=("zero_stage",),
    ),
)
