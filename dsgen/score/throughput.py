"""Tokens per second of one run: what the step time says beside what was measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dsgen.errors import ProblemsError
from dsgen.plan import Plan
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.lengths import padded_length
from dsgen.score.machines import hardware_of
from dsgen.score.model import shapes_of
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.shapes.lora import with_method
from dsgen.spec.values import Training
from dsgen.steptime.account import step_time
from dsgen.steptime.flops import model_flops
from dsgen.steptime.machine import machine_of
from dsgen.steptime.values import StepTime

VARIABLE = frozenset(("ms-swift-bench", "hf-single-gpu", "litgpt-resource"))
"""Sources whose samples have lengths of their own, of which the table gives the longest (README of the measurements):
their speeds compare with one another, and are no tokens per second."""
MICRO_STEPS = frozenset(("litgpt-resource",))
"""Sources whose step_time_s is that of one micro-batch."""
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
_TRAINERS = ("hf trainer", "ms-swift")
_NETWORK = re.compile(r"fabric (\d+)\s*gbps|(\d+)x(\d+)\s*gb(?:ps)?\b")
"""How notes state the network of a node: in all, or as cards times speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One run's throughput."""

    run: Run
    predicted: float | None = None
    """Tokens per second per GPU; where samples vary, samples times the row's (the longest) sequence length."""
    measured: float | None = None
    """Likewise, or samples where only they are known (``relative``); None: the row gives no speed."""
    relative: bool = False
    step: StepTime | None = None
    skipped: str | None = None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        if self.predicted is None or self.measured is None or self.relative:
            return None
        return self.predicted / self.measured - 1

    @property
    def comparable(self) -> float | None:
        """What is ranked against ``measured``: tokens, or samples of the longest length."""
        if self.predicted is None or not self.relative:
            return self.predicted
        return self.predicted / (self.run.counts["seq_len"] or 1)


def speed(run: Run) -> Speed:
    """Both, as far as the row says enough."""
    try:
        step, flops, peak = _step(run)
    except SkippedError as reason:
        return Speed(run=run, measured=_measured(run, None, None), relative=_relative(run), skipped=str(reason))
    except ProblemsError as error:
        message = "; ".join(problem.message for problem in error.problems)
        return Speed(run=run, measured=_measured(run, None, None), relative=_relative(run), skipped=message)
    return Speed(
        run=run,
        predicted=step.tokens_per_second_per_gpu * (run.counts["seq_len"] or 1) / padded_length(run),
        measured=_measured(run, flops, peak),
        relative=_relative(run),
        step=step,
    )


def _relative(run: Run) -> bool:
    return run.source in VARIABLE


def _measured(run: Run, flops: float | None, peak: float | None) -> float | None:
    """Tokens per second per GPU from what the row gives: itself, samples, seconds of a step, FLOP/s or utilisation."""
    numbers, length = run.numbers, run.counts["seq_len"]
    tokens, samples, seconds = numbers["tok_s_gpu"], numbers["samples_s_gpu"], numbers["step_time_s"]
    if run.source in VARIABLE:
        if samples is not None:
            return samples
        batch = run.counts["micro_batch"] if run.source in MICRO_STEPS else _batch_per_gpu(run)
        return batch / seconds if batch and seconds else None
    if tokens is not None or length is None:
        return tokens
    if samples is not None:
        return samples * length
    if seconds is not None:
        batch = _batch_per_gpu(run)
        return batch * length / seconds if batch else None
    if flops and numbers["tflops_gpu"] is not None:
        return numbers["tflops_gpu"] * 1e12 / flops
    if flops and peak and numbers["mfu_pct"] is not None:
        return numbers["mfu_pct"] / 100 * peak / flops
    return None


def _batch_per_gpu(run: Run) -> float | None:
    """Samples of one optimizer step over all GPUs."""
    counts = run.counts
    batch, world = counts["global_batch"], counts["n_gpus"] or 1
    if batch is None and counts["micro_batch"] is not None:
        ranks = (counts["tp"] or 1) * (counts["pp"] or 1) * (counts["cp"] or 1) * (counts["sp_ulysses"] or 1)
        batch = counts["micro_batch"] * (counts["grad_accum"] or 1) * (counts["dp"] or world // ranks)
    return None if batch is None else batch / world


def _step(run: Run) -> tuple[StepTime, float, float | None]:
    if run.texts["kind"] == "component":
        raise SkippedError("one module has no step")
    if run.counts["seq_len"] is None:
        raise SkippedError("the row does not state the sequence length")
    known = replace(run, texts=_filled(run.texts))
    hardware = hardware_of(known)
    network = _network(run)
    if network:
        hardware = replace(hardware, inter_node_gbit_s=network)
    plan, target = plan_of(known)
    shapes = shapes_of(known)
    training = _as_timed(training_of(known, shapes.architecture.gated), run)
    trained = with_method(shapes, training.method)
    length = round(padded_length(run))
    step = step_time(_as_run(plan, run), trained, training, length, hardware, target)
    peak = machine_of(hardware.gpu, plan.precision).peak
    return step, model_flops(trained, training, run.counts["seq_len"]), peak


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text or _ASSUMED.get(name, "") for name, text in texts.items()}


def _as_timed(training: Training, run: Run) -> Training:
    """What only time depends on: fp8 products, which flash attention it was, and autocast."""
    eight = run.texts["compute_dtype"].startswith(("fp8", "mxfp8"))
    old = run.texts["attention"] == "flash" and run.texts["framework"].startswith(_FIRST_FLASH)
    # The Trainer's bf16 and fp16 flags run everything under autocast; "mixed_precision no" says that they are off.
    cast = run.texts["framework"].startswith(_TRAINERS) and "mixed_precision no" not in run.texts["notes"]
    code = replace(training.code, eight_bit_products=eight, first_flash=old, autocast=training.code.autocast or cast)
    return replace(training, code=code)


def _as_run(plan: Plan, run: Run) -> Plan:
    """What only time depends on: the type in which gradients travel, and whether they do beside the backward pass."""
    if run.texts["reduce_dtype"] == "fp32" and plan.gradient_precision is None and plan.precision != "fp32":
        plan = replace(plan, gradient_precision="fp32")
    if "overlap-grad-reduce=true" in run.texts["notes"] or "overlap grad reduce" in run.texts["notes"]:
        plan = replace(plan, overlap_comm=True)
    return plan


def _network(run: Run) -> float | None:
    found = _NETWORK.search(run.texts["notes"])
    if found is None:
        return None
    return float(found[1]) if found[1] else float(found[2]) * float(found[3])
