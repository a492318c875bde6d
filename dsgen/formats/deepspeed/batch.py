"""The three batch sizes, whose product DeepSpeed checks (runtime/config.py:_batch_assertion)."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order, filled
from dsgen.formats.values import Reason


def batch(order: Order) -> Iterator[Reason]:
    """global batch = micro-batch x accumulation x data-parallel ranks."""
    plan = order.case.plan
    ranks = f"{plan.data_parallel} data-parallel rank" + ("s" if plan.data_parallel > 1 else "")
    yield filled(
        order,
        "train_batch_size",
        plan.global_batch,
        "the three below",
        f"{plan.micro_batch} x {plan.accumulation} x {ranks}; DeepSpeed stops if it is started on another number",
    )
    yield filled(
        order,
        "train_micro_batch_size_per_gpu",
        plan.micro_batch,
        "--per_device_train_batch_size",
        "sequences in one forward pass of one GPU",
    )
    yield filled(
        order,
        "gradient_accumulation_steps",
        plan.accumulation,
        "--gradient_accumulation_steps",
        "micro-batches per optimizer step; the engine counts them and divides the loss",
    )
    clipping = order.case.training.gradient_clipping
    why = "largest norm of the whole gradient" if clipping else "no clipping"
    yield filled(
        order,
        "gradient_clipping",
        clipping,
        "--max_grad_norm",
        f"{why}; written out because the default changed from 0 to 1 with DeepSpeed 0.19.3",
    )
