"""What of a run its step time depends on: the job that it was, with assumptions where the row is silent."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dsgen.facts.gpus import find_gpu
from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.lengths import padded_length
from dsgen.score.machines import hardware_of
from dsgen.score.model import shapes_of
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.steptime.account import step_time
from dsgen.steptime.flops import model_flops
from dsgen.steptime.machine import machine_of
from dsgen.steptime.values import StepTime
from dsgen.target import Target

_ASSUMED = {
    "act_ckpt": "none",
    "attention": "flash",
    "loss_impl": "full_ce",
    "optimizer": "adamw",
    "compile": "no",
}
"""What a speed is predicted with where a row says nothing; memory depends on each of these, a speed much less."""
_FIRST_FLASH = ("llm-foundry", "internevo")
"""Frameworks whose published figures are of mid-2023 and name flash attention without a version: the first
(llm-foundry kept the second in an extra of its own, gpu-flash2)."""
_READ_AS = {
    ("act_ckpt", "selective"): "selective_layer(every 2)",
    ("sharding", "mcore_fsdp"): "fsdp2_full",
    ("peft", "lora"): "lora r16 all",
}
"""fms-fsdp checkpoints some of the blocks, a share that its table does not state; Megatron's FSDP shards as FSDP2
does; adapters whose rank nobody states are small beside the rest."""
_FUSED_NORMS = ("internevo",)
"""Frameworks with one kernel for each norm and rotary embedding: apex's and flash-attn's (InternLM/InternEvo
internlm/model)."""
_TRAINERS = ("hf trainer", "ms-swift")
_EIGHT_BITS = (("mxfp8", "mx"), ("fp8_rowwise", "rowwise"), ("fp8", "tensorwise"))
"""What a compute type begins with, and how its operands are scaled."""
_OWN_H100 = "pytorch/ao@"
"""torchao's own figures for "H100" are of the 96 GB part of 500 W and 2.4 TB/s, as its
torchao/testing/training/roofline_utils.py says."""
_NETWORK = re.compile(r"fabric (\d+)\s*gbps|(\d+)x(\d+)\s*gb(?:ps)?\b")
"""How notes state the network of a node: in all, or as cards times speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Arguments of a step time."""

    plan: Plan
    shapes: Shapes
    """As trained."""
    training: Training
    length: int
    """Tokens of a padded sample."""
    stated: int
    """The row's sequence length."""
    hardware: Hardware
    target: Target

    def step(self) -> StepTime:
        """With the constants of now."""
        return step_time(self.plan, self.shapes, self.training, self.length, self.hardware, self.target)

    def speed(self) -> float:
        """Tokens per second per GPU; where samples vary, samples times the row's (the longest) sequence length."""
        return self.step().tokens_per_second_per_gpu * self.stated / self.length

    @property
    def flops(self) -> float:
        """Of the model, for each token of a sequence as long as stated."""
        return model_flops(self.shapes, self.training, self.stated)

    @property
    def peak(self) -> float | None:
        return machine_of(self.hardware.gpu, self.plan.precision).peak


def job_of(run: Run) -> Job:
    """Raises SkippedError or ProblemsError for a row that says too little."""
    if run.texts["kind"] == "component":
        raise SkippedError("one module has no step")
    stated = run.counts["seq_len"]
    if stated is None:
        raise SkippedError("the row does not state the sequence length")
    if "power-limited" in run.texts["notes"]:
        raise SkippedError("the card's power is limited, and the row does not say to what")
    known = replace(run, texts=_filled(run.texts), counts=_batched(run.counts))
    plan, target = plan_of(known)
    shapes = shapes_of(known)
    training = _as_timed(training_of(known, shapes.architecture.gated), run)
    return Job(
        plan=_as_run(plan, run),
        shapes=with_method(shapes, training.method),
        training=training,
        length=round(padded_length(known)),
        stated=stated,
        hardware=_machines(known),
        target=target,
    )


def on_one_network(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs, where what one of a source says of the network between its nodes holds for those of the same source and
    card that say nothing: a source describes its cluster once. Where rows differ, none is taken for another."""
    rows = tuple(runs)
    stated: dict[tuple[str, str], set[float]] = {}
    for run in rows:
        network = _network(run)
        if network:
            stated.setdefault((run.source, run.texts["gpu"]), set()).add(network)
    found = []
    for run in rows:
        known = stated.get((run.source, run.texts["gpu"]), set())
        if run.source and len(known) == 1 and _network(run) is None:
            (network,) = known
            run = replace(run, texts={**run.texts, "notes": f"{run.texts['notes']}; fabric {network:.0f}gbps"})
        found.append(run)
    return tuple(found)


def _machines(run: Run) -> Hardware:
    hardware = hardware_of(run)
    if run.reference.startswith(_OWN_H100) and run.texts["gpu"] == "h100":
        hardware = replace(hardware, gpu=find_gpu("h100-96gb") or hardware.gpu)
    network = _network(run)
    return replace(hardware, inter_node_gbit_s=network) if network else hardware


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    """What is empty as in _ASSUMED; what is said in part as in _READ_AS."""
    known = {name: text or _ASSUMED.get(name, "") for name, text in texts.items()}
    return known | {name: _READ_AS[name, known[name]] for name in known if (name, known[name]) in _READ_AS}


def _batched(counts: Mapping[str, int | None]) -> Mapping[str, int | None]:
    """A global batch without a micro-batch: one sample at a time."""
    world, whole = counts["n_gpus"] or 1, counts["global_batch"]
    if counts["micro_batch"] is not None or whole is None:
        return counts
    ranks = (counts["tp"] or 1) * (counts["pp"] or 1) * (counts["cp"] or 1) * (counts["sp_ulysses"] or 1)
    return {**counts, "micro_batch": 1, "grad_accum": max(1, whole * ranks // world)}


def _as_timed(training: Training, run: Run) -> Training:
    """What only time depends on: fp8 products, which flash attention it was, and autocast."""
    compute, notes, framework = run.texts["compute_dtype"], run.texts["notes"], run.texts["framework"]
    eight = next((recipe for start, recipe in _EIGHT_BITS if compute.startswith(start)), "")
    old = run.texts["attention"] == "flash" and framework.startswith(_FIRST_FLASH)
    # The Trainer's bf16 and fp16 flags run everything under autocast; "mixed_precision no" says that they are off.
    cast = framework.startswith(_TRAINERS) and "mixed_precision no" not in notes
    code = replace(
        training.code,
        eight_bit=eight,  # type: ignore[arg-type]  # the names stand in _EIGHT_BITS
        first_flash=old,
        fused=training.code.fused | ({"norm"} if framework.startswith(_FUSED_NORMS) else set()),
        deterministic="deterministic-mode" in notes,
        autocast=training.code.autocast or cast,
        hides_tensor_parallel=("async tp" in notes and "vanilla" not in notes) or _bridge(run),
    )
    return replace(training, code=code)


def _as_run(plan: Plan, run: Run) -> Plan:
    """What only time depends on: the type in which gradients travel, and whether they do beside the backward pass."""
    if run.texts["reduce_dtype"] == "fp32" and plan.gradient_precision is None and plan.precision != "fp32":
        plan = replace(plan, gradient_precision="fp32")
    notes = run.texts["notes"]
    # Megatron-Bridge's recipes overlap both; Megatron-LM on request.
    if "overlap-grad-reduce=true" in notes or "overlap grad reduce" in notes or _bridge(run):
        plan = replace(plan, overlap_comm=True)
    return plan


def _bridge(run: Run) -> bool:
    return run.texts["framework"].startswith("megatron-bridge")


def _network(run: Run) -> float | None:
    found = _NETWORK.search(run.texts["notes"])
    if found is None:
        return None
    return float(found[1]) if found[1] else float(found[2]) * float(found[3])
