"""What a DeepSpeed config cannot say, and where to say it instead."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.deepspeed.parallel import ATTENTION, sequences_elsewhere
from dsgen.formats.deepspeed.scheduler import unsaid
from dsgen.formats.deepspeed.trainer import trainer_not_carried
from dsgen.formats.torch_names import torchrun
from dsgen.formats.unscripted import unscripted
from dsgen.formats.values import NotCarried
from dsgen.plan import Checkpointing


def not_carried(order: Order) -> Iterator[NotCarried]:
    """In the order in which a person would meet them."""
    plan, training = order.case.plan, order.case.training
    if order.by_trainer:
        yield from trainer_not_carried(order)
    elif plan.checkpointing.kind != "none":
        yield NotCarried(
            "checkpointing",
            str(plan.checkpointing),
            _enable(plan.checkpointing),
            "the activation_checkpointing section acts only where the model's own code calls deepspeed.checkpointing",
        )
    yield from sequences_elsewhere(order)
    yield from unsaid(order)
    yield NotCarried(
        "sequence_length",
        order.sequence_length,
        f"tokenize and pack to {order.sequence_length} tokens",
        "the ledger counts activations and logits for this length",
    )
    yield NotCarried(
        "attention",
        training.attention,
        f'from_pretrained(..., attn_implementation="{ATTENTION[training.attention]}")',
        "the kernel is the model's choice",
    )
    if training.method.type == "lora":
        yield _lora(order)
    yield from unscripted(training, "engine.compile() after deepspeed.initialize", by_trainer=order.by_trainer)
    yield NotCarried(
        "world_size",
        plan.world_size,
        torchrun(plan),
        "how many processes run is the launcher's to say",
    )


def _enable(checkpointing: Checkpointing) -> str:
    if checkpointing.kind == "full":
        return 'model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})'
    if checkpointing.kind == "every":
        return f"torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) in one block of {checkpointing.every}"
    return "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, context_fn=...), keeping matrix products"


def _lora(order: Order) -> NotCarried:
    method = order.case.training.method
    targets = method.targets if isinstance(method.targets, str) else list(method.targets)
    return NotCarried(
        "method",
        method.type,
        f"peft.LoraConfig(r={method.rank}, lora_alpha={method.alpha!r}, lora_dropout={method.dropout!r}, "
        f"target_modules={targets!r})",
        "adapters are part of the model",
    )
