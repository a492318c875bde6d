"""The least that a config takes of a GPU, by the ledger, where all that it depends on was stated.

Loaded by the one rule that asks. What a config leaves to code counts as what takes least: flash attention, a loss that
never makes whole logits, an optimizer without states.
"""

from dataclasses import dataclass

from dsgen.errors import ProblemsError
from dsgen.formats.deepspeed.read import read
from dsgen.formats.deepspeed.read.sizes import default_buckets
from dsgen.hardware import Hardware
from dsgen.lint import versions
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage, whole
from dsgen.lint.target import LintTarget
from dsgen.memory.account import account
from dsgen.memory.ledger import DeviceAccount
from dsgen.plan import Plan, Precision, obeyed
from dsgen.shapes.lora import with_method
from dsgen.spec.values import Method, Optimizer, Training
from dsgen.target import Target


@dataclass(frozen=True, slots=True)
class Weighed:
    """A plan and its account of one GPU."""

    plan: Plan
    device: DeviceAccount


def least_of(file: ConfigFile, target: LintTarget) -> Weighed | None:
    """The account; None where something that it depends on is not known, or the config cannot be taken for a plan."""
    model, gpu, micro = (
        target.model,
        target.gpu,
        whole(file.get("train_micro_batch_size_per_gpu")) or target.micro_batch,
    )
    if model is None or model.shapes is None or gpu is None or micro is None or target.world_size is None:
        return None
    if target.sequence_length is None or target.checkpointing is None or file.has("pipeline") or file.has("amp"):
        return None
    meant = Target(loaded_by=target.loaded_by or "deepspeed", versions={"deepspeed": versions.show(target.deepspeed)})
    try:
        reading = read(file.document, meant)
        method = target.method or Method()
        shapes = with_method(model.shapes, method)
        base = _base(file, target, micro, reading.wishes.precision or "fp32")
        if reading.open and _depends_on(reading.open):
            return None
        plan = obeyed(base, reading.wishes)
        if method.quantization is not None and plan.zero_stage == 3:
            return None  # weights in few bits that are sharded: no ledger counts these
        hardware = Hardware(
            gpu=gpu,
            gpus_per_node=plan.gpus_per_node,
            nodes=max(1, target.world_size // plan.gpus_per_node),
            memory_budget=gpu.memory,
            budget_reason="the whole card",
        )
        training = Training(
            sequence_length=target.sequence_length,
            attention="flash",
            loss="fused_linear",
            optimizer=Optimizer(type=_optimizer(file)),
            method=method if method.quantization is not None else Method(),
        )
        ledger = account(plan, shapes, training, target.sequence_length, hardware, meant)
    except (ProblemsError, ValueError, TypeError, ArithmeticError, LookupError):
        return None  # values that other rules refuse, or a layout that no ledger counts
    return Weighed(plan, ledger.device)


def _base(file: ConfigFile, target: LintTarget, micro: int, precision: Precision) -> Plan:
    assert target.world_size is not None
    assert target.checkpointing is not None
    return Plan(
        world_size=target.world_size,
        gpus_per_node=min(target.gpus_per_node or target.world_size, target.world_size),
        zero_stage=stage(file, target) or 0,
        precision=precision,
        checkpointing=target.checkpointing,
        micro_batch=micro,
        accumulation=whole(file.get("gradient_accumulation_steps")) or 1,
        buckets=default_buckets(versions.show(target.deepspeed)),
    )


def _depends_on(left_open: tuple[str, ...]) -> bool:
    """Whether what a loader fills in decides about memory; batch sizes and rates do not, for they were stated."""
    return any(key.endswith((".enabled", ".stage", ".device")) for key in left_open)


def _optimizer(file: ConfigFile) -> str:
    name = file.get("optimizer", "type")
    return name.lower() if isinstance(name, str) and name.lower() in ("adam", "adamw") else "sgd"
