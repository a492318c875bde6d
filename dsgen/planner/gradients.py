"""In which type the gradients of several micro-batches add up.

The rule: in fp32 where it fits and DeepSpeed can, otherwise in the compute type, which is then said.

- Stages 2 and 3 keep a rank's shard of the sum only: fp32 costs 2 bytes a parameter of it, and at stage 2 nothing once
  gradients are reduced, since a 16-bit sum stands beside what is added to it (dsgen/memory/gradients.py).
- Stage 1 keeps it whole: fp32 costs 4 bytes a parameter and, in bf16, the overlap of reduction and backward pass
  (BF16_Optimizer). It is worth that only where too many add up for the compute type.
- Stage 0 can't. A rung that would add up too many in the compute type is passed over while a later one fits.
- FSDP2 always does: dsgen writes reduce_dtype fp32, in which FSDP2 keeps the sum too
  (torch/distributed/fsdp/_fully_shard/_fsdp_param.py:to_accumulated_grad_if_needed).
"""

from collections.abc import Callable
from dataclasses import replace

from dsgen.legality.check import explain
from dsgen.legality.gradient_sums import BITS, sums_coarsely, too_many
from dsgen.legality.values import Row
from dsgen.plan import Plan
from dsgen.target import Format


def in_fp32(plan: Plan) -> Plan:
    """The plan with sums in fp32; BF16_Optimizer overlaps nothing."""
    summed = replace(plan, gradient_precision="fp32")
    return replace(summed, overlap_comm=False) if summed.has_bf16_optimizer else summed


def exact(plan: Plan, format: Format, broken: Callable[[Plan], list[Row]]) -> Plan:
    """The plan with the best type for its sums, whether it fits or not."""
    if plan.accumulation == 1 or plan.precision == "fp32":
        return plan
    if format != "fsdp2" and plan.zero_stage < 2 and not sums_coarsely(plan):
        return plan
    summed = in_fp32(plan)
    return plan if broken(summed) else summed


def sum_reason(plan: Plan, broken: Callable[[Plan], list[Row]]) -> str:
    """One sentence about the chosen plan; empty where nothing adds up, or nothing could be lost."""
    if plan.accumulation == 1 or plan.precision == "fp32":
        return ""
    head = f"Gradients of {plan.accumulation} micro-batches add up in"
    if plan.sums_apart:
        where = ", whole on every GPU" if plan.zero_stage == 1 else ""
        return f"{head} fp32{where}: a sum in {plan.precision} keeps {BITS[plan.precision]} bits."
    return f"{head} {plan.precision}, which keeps {BITS[plan.precision]} bits: {_why_not(plan, broken)}."


def _why_not(plan: Plan, broken: Callable[[Plan], list[Row]]) -> str:
    summed = in_fp32(plan)
    if rows := broken(summed):
        return explain(rows[0], summed)
    if plan.zero_stage == 1 and not sums_coarsely(plan):
        return (
            f"stage 1 would keep fp32 whole on every GPU, 4 bytes a parameter more, which fewer than "
            f"{too_many(plan.precision)} do not need"
        )
    return "in fp32 they do not fit"


def coarse_reason(plan: Plan) -> str:
    """Why a plan that fits is passed over."""
    return (
        f"gradients of {plan.accumulation} micro-batches would add up in {plan.precision}, which keeps "
        f"{BITS[plan.precision]} bits: most of the last ones is rounded away"
    )
