"""What sharding.py alone cannot say, and where to say it instead."""

from collections.abc import Iterator

from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.torch_names import torchrun
from dsgen.formats.unscripted import unscripted
from dsgen.formats.values import NotCarried


def not_carried(order: CodeOrder) -> Iterator[NotCarried]:
    """In the order in which a person would meet them; train.py does all of it but what unscripted.py names."""
    plan, training = order.plan, order.case.training
    yield NotCarried(
        "optimizer",
        training.optimizer.type,
        "make it after shard(model, mesh, blocks)",
        "parameters are replaced by their shards; an optimizer made before trains what nobody uses",
    )
    yield NotCarried(
        "micro_batch",
        plan.micro_batch,
        f"DataLoader(data, {plan.micro_batch}, sampler=DistributedSampler(data))",
        "the ledger counts activations for it",
    )
    if plan.accumulation > 1:
        call = "True" if plan.reduce_each_micro_batch else "last_micro_batch"
        yield NotCarried(
            "accumulation",
            plan.accumulation,
            f"model.set_requires_gradient_sync({call}) before each backward pass, and divide the loss",
            "the loop counts micro-batches",
        )
    yield NotCarried(
        "sequence_length",
        order.sequence_length,
        f"tokenize and pack to {order.sequence_length} tokens",
        "the ledger counts activations and logits for this length",
    )
    if training.gradient_clipping:
        yield NotCarried(
            "gradient_clipping",
            training.gradient_clipping,
            f"torch.nn.utils.clip_grad_norm_(model.parameters(), {training.gradient_clipping!r})",
            "clipping belongs to the step",
        )
    yield from unscripted(training, "block.compile() for each block, before shard(model, mesh, blocks)")
    yield NotCarried("world_size", plan.world_size, torchrun(plan), "how many processes run is the launcher's to say")
