"""The learning-rate schedule, as far as DeepSpeed has it (runtime/lr_schedules.py)."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order, filled
from dsgen.formats.values import NotCarried, Reason
from dsgen.spec.values import Scheduler

# DeepSpeed clamps warmup_num_steps to two (WarmupLR.__init__, WarmupCosineLR.__init__).
SHORTEST_WARMUP = 2

# The scheduler is stepped after the optimizer, and counts from -1: get_lr gives the least rate for -1 and, as
# 0 / warmup_num_steps, again for 0. So the peak is reached one step later than the warm-up is long.
_SLOW_START = "the first two optimizer steps run at rate 0"

_TYPES = {"constant": "WarmupLR", "linear": "WarmupDecayLR", "cosine": "WarmupCosineLR"}


def written(order: Order) -> Scheduler | None:
    """The schedule that gets a section; a constant rate without warm-up needs none."""
    wanted = order.case.training.scheduler
    return None if wanted is None or (wanted.type == "constant" and wanted.warmup_steps == 0) else wanted


def scheduler(order: Order) -> Iterator[Reason]:
    """Stepped by the engine, once per optimizer step."""
    wanted = written(order)
    if wanted is None:
        return
    falls = wanted.type != "constant"
    yield Reason("scheduler.type", _TYPES[wanted.type], f"{wanted.type} after a linear warm-up")
    if falls:
        yield filled(
            order,
            "scheduler.params.total_num_steps",
            wanted.total_steps,
            "--max_steps, or the epochs",
            "optimizer steps, not micro-batches",
        )
    if wanted.type != "cosine":
        yield filled(order, "scheduler.params.warmup_min_lr", 0, "nothing: always 0", "the warm-up starts at 0")
        yield filled(
            order,
            "scheduler.params.warmup_max_lr",
            order.case.training.optimizer.lr,
            "--learning_rate",
            "the optimizer's rate; left out, WarmupDecayLR would take 0.001 instead",
        )
    yield filled(
        order,
        "scheduler.params.warmup_num_steps",
        max(wanted.warmup_steps, SHORTEST_WARMUP),
        "--warmup_steps",
        f"{_length(wanted)}; {_SLOW_START}",
    )
    yield Reason("scheduler.params.warmup_type", "linear", "DeepSpeed's default is a log curve")
    if wanted.type == "cosine":
        yield Reason("scheduler.params.warmup_min_ratio", 0, "the warm-up starts at 0")
        yield Reason("scheduler.params.cos_min_ratio", wanted.min_lr_ratio, "last rate divided by the peak")


def _length(wanted: Scheduler) -> str:
    return "the spec's warm-up" if wanted.warmup_steps >= SHORTEST_WARMUP else "DeepSpeed's shortest warm-up"


def unsaid(order: Order) -> Iterator[NotCarried]:
    """What of the schedule DeepSpeed's classes cannot do."""
    wanted = written(order)
    if wanted is None:
        return
    own = "deepspeed.initialize(lr_scheduler=...)" if not order.by_trainer else "Trainer(optimizers=...)"
    if wanted.warmup_steps < SHORTEST_WARMUP:
        yield NotCarried(
            "training.scheduler.warmup_steps",
            wanted.warmup_steps,
            f"a scheduler of your own: {own}",
            f"DeepSpeed warms up over at least {SHORTEST_WARMUP} steps, and {_SLOW_START}",
        )
    if wanted.type == "linear" and wanted.min_lr_ratio:
        yield NotCarried(
            "training.scheduler.min_lr_ratio",
            wanted.min_lr_ratio,
            f"a scheduler of your own: {own}",
            "WarmupDecayLR falls to its warmup_min_lr, which is also where the warm-up starts: as written, to 0",
        )
