"""What a plan's memory figures rest on: the nearest measured runs and how far the ledger is from them, or that there
are none of this kind."""

from collections.abc import Sequence
from math import log2

from dsgen.facts.measured import Measured, measured
from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target

_SHOWN = 2
"""Runs that are named."""
_FORMATS = {
    "deepspeed": "DeepSpeed",
    "fsdp2": "FSDP2",
    "fsdp1": "FSDP1",
    "ddp": "plain torch",
    "megatron": "Megatron-Core",
}
_METHODS = {"full": "full training", "lora": "LoRA", "qlora": "QLoRA"}


def basis_of(plan: Plan, shapes: Shapes, training: Training, hardware: Hardware, target: Target) -> str:
    """One or two sentences. Of one kind are runs of the same framework, sharding and method; of these the nearest are
    alike in offload, checkpointing, size, GPU, shards and tokens. ``shapes``: as they are trained."""
    asked = _asked(plan, shapes, training, hardware, target)
    runs = measured()
    same = [run for run in runs if (run.format, run.stage, run.method) == (asked.format, asked.stage, asked.method)]
    kind = _kind(asked)
    if same:
        errors = [abs(run.error) for run in same]
        count = f"{len(same)} measured {'run' if len(same) == 1 else 'runs'} of this kind ({kind})"
        wide = f", {_middle(errors) * 100:.1f} % off in the middle" if len(same) > _SHOWN else ""
        return f"{count}{wide}; nearest: {_named(same, asked)}"
    partly = [run for run in runs if (run.format, run.method) == (asked.format, asked.method)] or [
        run for run in runs if run.format == asked.format
    ]
    if partly:
        return f"no measured run of this kind ({kind}), formulas only; nearest: {_named(partly, asked)}"
    return f"no measured run of this kind ({kind}), nor of its framework: formulas only"


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _asked(plan: Plan, shapes: Shapes, training: Training, hardware: Hardware, target: Target) -> Measured:
    method = training.method
    ranks = plan.context_parallel * plan.ulysses
    return Measured(
        row_id="",
        source="",
        model=shapes.name,
        parameters=shapes.parameters,
        method=("qlora" if method.quantization else "lora") if method.type == "lora" else "full",
        format=target.format,
        stage=plan.zero_stage,
        checkpointing=plan.checkpointing.kind,
        offload=offload_of(plan),
        gpu=hardware.gpu.name,
        gpus=plan.world_size,
        shards=plan.shards if plan.zero_stage else 1,
        # The length does not matter to which runs are near, beyond what a micro-batch has.
        tokens=max(1, plan.micro_batch * (training.sequence_length or _USUAL) // ranks),
        statistic="",
        gib=0,
        error=0,
    )


_USUAL = 4096


def offload_of(plan: Plan) -> str:
    """What a plan does not keep on the GPU, in one word for each."""
    words = [
        word
        for word, place in (("optimizer", plan.offload_optimizer), ("parameters", plan.offload_parameters))
        if place != "none"
    ]
    return "+".join([*words, *(["activations"] if plan.offload_activations else [])]) or "none"


def _kind(run: Measured) -> str:
    sharding = f"ZeRO-{run.stage}" if run.stage else "no sharding"
    name = _FORMATS.get(run.format, run.format)
    return f"{name}, {sharding}, {_METHODS[run.method]}"


def _named(runs: Sequence[Measured], asked: Measured) -> str:
    """The nearest, each another setting than those before it."""
    found: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: (_distance(run, asked), run.row_id)):
        kind = "" if (run.stage, run.method) == (asked.stage, asked.method) else f", {_kind(run)}"
        setting = f"{run.model}, {run.gpus} x {run.gpu}{kind}, {run.checkpointing} checkpointing"
        found.setdefault(setting, f"{setting} ({run.error * 100:+.1f} %, {run.source})")
        if len(found) == _SHOWN:
            break
    return "; ".join(found.values())


def _distance(run: Measured, asked: Measured) -> float:
    """Doublings of size, shards and tokens, and what else differs, in doublings of size by how much it changes."""
    return (
        2 * (run.offload != asked.offload)
        + 1 * (run.method != asked.method)
        + 1 * (run.stage != asked.stage)
        + 1 * (run.checkpointing != asked.checkpointing)
        + abs(log2(run.parameters / asked.parameters))
        + 0.5 * (run.gpu != asked.gpu)
        + 0.25 * abs(log2(run.shards / asked.shards))
        + 0.25 * abs(log2(run.tokens / asked.tokens))
    )
