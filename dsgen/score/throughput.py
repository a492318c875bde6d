"""Tokens per second of one run: what the step time says beside what was measured."""

from collections.abc import Iterable
from dataclasses import dataclass

from dsgen.errors import ProblemsError
from dsgen.score.lengths import mean_length
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.score.timed import Job, job_of, on_one_network
from dsgen.steptime.values import StepTime

_MICRO_STEP = "per micro-iteration"
"""What notes say where step_time_s is that of one micro-batch."""


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


def speeds(runs: Iterable[Run]) -> tuple[Speed, ...]:
    """Of a whole table, in its order."""
    return tuple(speed(run) for run in on_one_network(runs))


def speed(run: Run) -> Speed:
    """Both, as far as the row says enough."""
    relative = _relative(run)
    try:
        job = job_of(run)
    except SkippedError as reason:
        return Speed(run=run, measured=_measured(run, None), relative=relative, skipped=str(reason))
    except ProblemsError as error:
        message = "; ".join(problem.message for problem in error.problems)
        return Speed(run=run, measured=_measured(run, None), relative=relative, skipped=message)
    step, measured = job.step(), _measured(run, job)
    predicted = step.tokens_per_second_per_gpu * job.stated / job.length
    return Speed(run=run, predicted=predicted, measured=measured, relative=relative, step=step)


def _relative(run: Run) -> bool:
    """Whether samples are known and their tokens are not: they have lengths of their own, of which the row gives the
    longest, or are whole texts to be classified. Such speeds compare with one another, and are no tokens per second."""
    return run.numbers["tok_s_gpu"] is None and (mean_length(run) is not None or run.texts["kind"] == "encoder_ft")


def _measured(run: Run, job: Job | None) -> float | None:
    """Tokens per second per GPU from what the row gives: itself, samples, seconds of a step, FLOP/s or utilisation."""
    numbers, length = run.numbers, run.counts["seq_len"]
    tokens, samples, seconds = numbers["tok_s_gpu"], numbers["samples_s_gpu"], numbers["step_time_s"]
    if _relative(run):
        if samples is not None:
            return samples
        batch = run.counts["micro_batch"] if _MICRO_STEP in run.texts["notes"] else _batch_per_gpu(run)
        return batch / seconds if batch and seconds else None
    if tokens is not None or length is None:
        return tokens
    if samples is not None:
        return samples * length
    if seconds is not None:
        batch = _batch_per_gpu(run)
        return batch * length / seconds if batch else None
    if job and numbers["tflops_gpu"] is not None:
        return numbers["tflops_gpu"] * 1e12 / job.flops
    if job and job.peak and numbers["mfu_pct"] is not None:
        return numbers["mfu_pct"] / 100 * job.peak / job.flops
    return None


def _batch_per_gpu(run: Run) -> float | None:
    """Samples of one optimizer step over all GPUs."""
    counts = run.counts
    batch, world = counts["global_batch"], counts["n_gpus"] or 1
    if batch is None and counts["micro_batch"] is not None:
        ranks = (counts["tp"] or 1) * (counts["pp"] or 1) * (counts["cp"] or 1) * (counts["sp_ulysses"] or 1)
        batch = counts["micro_batch"] * (counts["grad_accum"] or 1) * (counts["dp"] or world // ranks)
    return None if batch is None else batch / world
