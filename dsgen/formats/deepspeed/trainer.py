"""The TrainingArguments that belong to a config whose "auto" values the Trainer fills."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.deepspeed.parallel import gradient_factor
from dsgen.formats.deepspeed.scheduler import written
from dsgen.formats.values import NotCarried


@dataclass(frozen=True, slots=True)
class Argument:
    """One field of TrainingArguments, by its name in Python and on the command line."""

    name: str
    value: object
    why: str

    @property
    def flag(self) -> str:
        """As it is written on a command line."""
        if isinstance(self.value, bool):
            return f"--{self.name} {str(self.value).lower()}"
        if isinstance(self.value, dict):
            return f"--{self.name} '{json.dumps(self.value)}'"
        return f"--{self.name} {self.value}"


# With Ulysses below stage 3; see dsgen/formats/deepspeed/parallel.py:gradient_factor.
_CLIPPED = (
    "with Ulysses the gradient comes out as many times too large as ranks share a sequence, so it is clipped there"
)


def arguments(order: Order) -> Iterator[Argument]:
    """Exactly what the plan asks of the Trainer; everything else is the user's."""
    plan, training = order.case.plan, order.case.training
    auto = 'the file says "auto"'
    yield Argument("per_device_train_batch_size", plan.micro_batch, auto)
    yield Argument("gradient_accumulation_steps", plan.accumulation, auto)
    if plan.precision != "fp32":
        yield Argument(plan.precision, True, auto)
    factor = gradient_factor(plan)
    yield Argument("max_grad_norm", training.gradient_clipping * factor, _CLIPPED if factor > 1 else auto)
    yield Argument("learning_rate", training.optimizer.lr, auto)
    yield Argument("weight_decay", training.optimizer.weight_decay, auto)
    if training.optimizer.type.lower() != "sgd":
        yield Argument("adam_beta1", training.optimizer.betas[0], auto)
        yield Argument("adam_beta2", training.optimizer.betas[1], auto)
        yield Argument("adam_epsilon", training.optimizer.eps, auto)
    yield from _schedule(order)
    yield from _checkpointing(order)


def _schedule(order: Order) -> Iterator[Argument]:
    wanted = order.case.training.scheduler
    section = written(order)
    if section is None:
        yield Argument(
            "lr_scheduler_type", "constant", "the file has no scheduler, and the Trainer's own would fall linearly"
        )
    elif section.warmup_steps:
        yield Argument("warmup_steps", section.warmup_steps, 'the file says "auto"')
    if wanted is not None and wanted.total_steps is not None:
        yield Argument("max_steps", wanted.total_steps, "the length of the training is the Trainer's to know")


def _checkpointing(order: Order) -> Iterator[Argument]:
    checkpointing = order.case.plan.checkpointing
    if checkpointing.kind == "none":
        return
    why = "no key of a DeepSpeed config checkpoints the activations of a model"
    yield Argument("gradient_checkpointing", True, why)
    # An int first: json.loads of the flag gives it back as such, and both spellings of the argument take it.
    kwargs: dict[str, object] = {"use_reentrant": False}
    if checkpointing.kind == "every":
        kwargs["every_n_layers"] = checkpointing.every
    yield Argument("gradient_checkpointing_kwargs", kwargs, "reentrant checkpointing loses gradients of frozen inputs")


def trainer_not_carried(order: Order) -> Iterator[NotCarried]:
    """The arguments as what the file does not say."""
    for argument in arguments(order):
        yield NotCarried(argument.name, argument.value, argument.flag, argument.why)
