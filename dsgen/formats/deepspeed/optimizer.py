"""The optimizer, by DeepSpeed's names (runtime/config.py:DEEPSPEED_OPTIMIZERS) or torch.optim's."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order, filled
from dsgen.formats.values import Reason
from dsgen.legality.optimizers import needs_untested_flag

_NAMES = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}


def optimizer(order: Order) -> Iterator[Reason]:
    """DeepSpeed builds it: fused on a GPU, DeepSpeedCPUAdam where the states are offloaded."""
    plan, wanted = order.case.plan, order.case.training.optimizer
    kind = wanted.type.lower()
    yield Reason("optimizer.type", _NAMES[kind], _which(kind, plan.offload_optimizer != "none"))
    yield filled(order, "optimizer.params.lr", wanted.lr, "--learning_rate", "the spec's learning rate")
    if kind == "sgd":
        yield Reason("optimizer.params.momentum", wanted.momentum, "the spec's momentum")
    else:
        yield filled(
            order,
            "optimizer.params.betas",
            list(wanted.betas),
            "--adam_beta1 and --adam_beta2",
            "decay of the two moments",
        )
        yield filled(order, "optimizer.params.eps", wanted.eps, "--adam_epsilon", "keeps the division finite")
    yield filled(
        order, "optimizer.params.weight_decay", wanted.weight_decay, "--weight_decay", "the spec's weight decay"
    )
    if kind == "adam":
        yield Reason(
            "optimizer.params.adam_w_mode",
            False,
            "plain Adam: DeepSpeed's Adam is AdamW unless it is told otherwise (ops/adam/fused_adam.py)",
        )
    if needs_untested_flag(kind, plan.zero_stage):
        yield Reason(
            "zero_allow_untested_optimizer",
            True,
            f"{_NAMES[kind]} is not on DeepSpeed's list for ZeRO (runtime/zero/utils.py), and it stops without this",
        )


def _which(kind: str, offloaded: bool) -> str:
    if kind == "sgd":
        return "torch.optim.SGD"
    return "DeepSpeedCPUAdam, since the states are offloaded" if offloaded else "DeepSpeed's fused Adam"
