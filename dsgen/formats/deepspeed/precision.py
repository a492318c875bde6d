"""Compute type, loss scaling, and the type in which gradients accumulate."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order, filled
from dsgen.formats.values import Reason
from dsgen.legality.gradient_sums import BITS
from dsgen.plan import Plan


def precision(order: Order) -> Iterator[Reason]:
    """A bf16 or an fp16 section; fp32 is what DeepSpeed does without either."""
    plan = order.case.plan
    if plan.precision == "bf16":
        yield filled(order, "bf16.enabled", True, "--bf16", "compute in bf16 beside fp32 master weights")
    if plan.precision == "fp16":
        yield filled(order, "fp16.enabled", True, "--fp16", "compute in fp16 beside fp32 master weights")
        yield Reason("fp16.loss_scale", 0, "0 is dynamic: small gradients would vanish in fp16 without a scale")
        yield Reason("fp16.initial_scale_power", 16, "starts at 2^16, DeepSpeed's default, and halves on overflow")
        yield Reason("fp16.loss_scale_window", 1000, "doubles after so many steps without overflow; the default")
        yield Reason("fp16.hysteresis", 2, "overflows before the scale is halved; the default")
        yield Reason("fp16.min_loss_scale", 1, "never scales below 1; the default")
    if plan.precision != "fp32" and (plan.accumulation > 1 or plan.sums_apart):
        yield Reason("data_types.grad_accum_dtype", plan.gradient_precision or plan.precision, _sums(plan))


def _sums(plan: Plan) -> str:
    keeps = f"a sum in {plan.precision} keeps {BITS[plan.precision]} bits"
    if not plan.sums_apart:
        return f"micro-batches add up in the compute type: {keeps}; dsgen plan says why not fp32"
    if plan.has_bf16_optimizer:
        return f"{keeps}; at stage 1 DeepSpeed keeps fp32 gradients whole, and steps with BF16_Optimizer"
    if plan.zero_stage == 1:
        return f"{keeps}; stage 1 keeps fp32 gradients whole until they are reduced"
    return f"{keeps}; in fp32 it takes 2 bytes a parameter more, divided by the ranks"
