"""Trials of a DeepSpeed config: what is changed for each, and what it then has to be equal to."""

from collections.abc import Iterator
from typing import Any

from dsgen.smoke.adapt import Adapted
from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.proof.optimizers import plain_optimizer
from dsgen.smoke.proof.traits import DUMMY_STEP, SUMS_ELSEWHERE, deepspeed_traits, sums_of
from dsgen.smoke.proof.values import Precision, Trial

SGD: dict[str, Any] = {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}
CLIP_SHARE = 0.3
"""Of the first gradient's norm: low enough that a step without clipping is three times too long."""

_ZERO = "zero_optimization"
_DEFAULT_BUCKET = 500_000_000  # deepspeed/runtime/zero/config.py, reduce_bucket_size
_MOST_EXACT_RANKS = 2  # with more, the order of a sum is the communication library's
_SUMS_KEYS = (
    "communication_data_type",
    "prescale_gradients",
    "bf16.immediate_grad_update",
    f"{_ZERO}.zero_quantized_gradients",
)
# Sections that change what is trained: a plain loop does not follow them.
_OTHER_TRAININGS = (
    "compression_training",
    "curriculum_learning",
    "data_efficiency",
    "progressive_layer_drop",
    f"{_ZERO}.zenflow",
)
_OTHER_RANKS = ("tensor_parallel.autotp_size", "sequence_parallel_size", "expert_parallel", "pipeline")


def not_comparable(config: Edits) -> str | None:
    """Why a plain loop can't stand beside this config; None where it can."""
    for key in _OTHER_TRAININGS:
        section = config.get(key)
        if section and (not isinstance(section, dict) or section.get("enabled", True)):
            return f"{key} changes what is trained in a way that the plain loop does not follow"
    for key in _OTHER_RANKS:
        if config.get(key) not in (None, 0, 1, {}):
            return f"with {key}, ranks share a batch or hold other weights, which the plain loop does not follow"
    if config.get("fp16.enabled") is True and config.get("bf16.enabled") is True:
        return "both fp16 and bf16 are on"
    return None


def deepspeed_trials(adapted: Adapted, checkpointing: tuple[str, int], processes: int) -> Iterator[Trial]:
    """The configured optimizer and clipped SGD in fp32, and the configured optimizer in bf16 if the config has it."""
    config = Edits(adapted.config)
    section = adapted.optimizer or config.get("optimizer")
    optimizer = plain_optimizer(section if isinstance(section, dict) else {})
    _, accumulation = _batch(config, processes)
    if optimizer is not None:
        yield _trial("configured optimizer, fp32", adapted, checkpointing, processes, "fp32", optimizer, accumulation)
    yield _trial("clipped SGD, fp32", adapted, checkpointing, processes, "fp32", None, max(2, accumulation))
    if optimizer is not None and config.get("bf16.enabled") is True:
        yield _trial("configured optimizer, bf16", adapted, checkpointing, processes, "bf16", optimizer, accumulation)


def _trial(
    name: str,
    adapted: Adapted,
    checkpointing: tuple[str, int],
    processes: int,
    precision: Precision,
    optimizer: dict[str, Any] | None,
    accumulation: int,
) -> Trial:
    """``optimizer``: as configured; None for SGD."""
    edits = Edits(adapted.config)
    micro, _ = _batch(edits, processes)
    sums_known = processes <= _MOST_EXACT_RANKS and all(edits.get(key) in (None, False) for key in _SUMS_KEYS)
    _plain_batch(edits, micro, accumulation)
    if precision == "fp32":
        _fp32(edits)
    if edits.get("scheduler") is not None:
        edits.drop("scheduler", "the learning rate stays where it is, so that every step moves the weights")
    if optimizer is None:
        _sgd(edits)
    stage = edits.get(f"{_ZERO}.stage") or 0
    plain = optimizer or SGD
    traits = tuple(
        deepspeed_traits(
            stage=stage,
            precision=precision,
            optimizer=plain["type"],
            accumulate_in=edits.get("data_types.grad_accum_dtype"),
            sums_known=sums_known,
        )
    )
    loose = SUMS_ELSEWHERE in traits
    clip = edits.get("gradient_clipping")
    return Trial(
        name=name,
        subject="deepspeed",
        precision=precision,
        sums=sums_of(traits),
        tolerance="bf16, sums not followed" if loose else precision,
        optimizer={**plain, "dummy_step": DUMMY_STEP in traits},
        clip={"share": CLIP_SHARE} if optimizer is None else clip or None,
        micro_batch=micro,
        accumulation=accumulation,
        layout={
            "format": "deepspeed",
            "stage": stage,
            "reduce_bucket": edits.get(f"{_ZERO}.reduce_bucket_size") or _DEFAULT_BUCKET,
        },
        uneven=False,
        content={
            "config": edits.config,
            "optimizer": None if optimizer is None else adapted.optimizer,
            "checkpointing": list(checkpointing),
        },
        changes=edits.changes(),
        traits=traits,
    )


def _batch(config: Edits, processes: int) -> tuple[int, int]:
    """Micro-batch and accumulation as DeepSpeed completes them (deepspeed/runtime/config.py)."""
    total, micro = config.get("train_batch_size"), config.get("train_micro_batch_size_per_gpu")
    steps = config.get("gradient_accumulation_steps")
    if micro is None:
        micro = total // ((steps or 1) * processes) if total else 1
    if steps is None:
        steps = total // (micro * processes) if total else 1
    return micro, steps


def _plain_batch(edits: Edits, micro: int, accumulation: int) -> None:
    why = "two micro-batches at least, or a loss that is not divided would not show"
    edits.set("gradient_accumulation_steps", accumulation, why)
    edits.set("train_micro_batch_size_per_gpu", micro, "as it follows from the other two")
    edits.drop("train_batch_size", "follows from the other two")


def _fp32(edits: Edits) -> None:
    why = "equality is proven in fp32, where rounding hides nothing"
    for section in ("bf16", "fp16", "amp", "torch_autocast"):
        if edits.get(f"{section}.enabled") is True:
            edits.set(f"{section}.enabled", False, why)
    edits.drop("data_types", why)
    edits.drop("communication_data_type", why)
    for name in ("zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients"):
        if edits.get(f"{_ZERO}.{name}") is True:
            edits.set(f"{_ZERO}.{name}", False, why)


def _sgd(edits: Edits) -> None:
    why = "SGD: Adam hides a gradient that is wrong by a factor"
    edits.set("optimizer", SGD, why)
    edits.set("zero_allow_untested_optimizer", True, "DeepSpeed asks for it with SGD")
    edits.set("zero_force_ds_cpu_optimizer", False, "DeepSpeed's CPU optimizers know no SGD")
    why = "0.3 x the norm of the first gradient, so that every step clips"
    edits.set("gradient_clipping", "0.3 x the first norm", why)
