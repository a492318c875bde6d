"""Compute type, loss scaling, and the type in which gradients accumulate."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order, filled
from dsgen.formats.values import Reason


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
    if plan.accumulation > 1 and plan.precision != "fp32":
        yield Reason(
            "data_types.grad_accum_dtype",
            plan.precision,
            "micro-batches accumulate in the compute type, as the ledger counts gradients; fp32 is steadier over many "
            "micro-batches and costs 2 bytes more per gradient (not at stage 0)",
        )
