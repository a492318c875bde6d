"""A spec becomes a case: decided, written as build would write it, and run with its family's decoder."""

import json
from pathlib import Path

from dsgen.errors import InputError
from dsgen.formats import writer
from dsgen.formats.unscripted import not_scripted
from dsgen.planner.job import Job, decide_spec
from dsgen.smoke.decoders import decoder_of
from dsgen.smoke.values import Case, Filling
from dsgen.spec.read import read_spec


def from_spec(path: Path) -> Case:
    """The case of a spec; refused with the planner's reasons where nothing fits."""
    spec = read_spec(str(path))
    if spec.target.format not in ("deepspeed", "fsdp2"):
        known = "smoke runs deepspeed and fsdp2"
        raise InputError.at(f"{known}, not {spec.target.format} yet", spec.place("target", "format"))
    job = decide_spec(spec)
    plan = job.decision.chosen.plan
    by_code = spec.target.format == "fsdp2"
    written = writer(spec.target.format).write(
        plan, job.shapes, job.training, job.target, job.hardware, job.sequence_length, folder=by_code
    )
    decided = f"decided for {plan.world_size} GPU{'s' if plan.world_size > 1 else ''}"
    if by_code:
        family = job.shapes.architecture.family
        return Case(
            name=str(path), config={}, decoder="", family=family, format="fsdp2", folder=written.files, notes=(decided,)
        )
    decoder, note = decoder_of(job.shapes.architecture, job.training.method, job.training.attention)
    config = json.loads(next(iter(written.files.values())))
    split = config.pop("tensor_parallel", None)
    return Case(
        name=str(path),
        config=config,
        decoder=decoder,
        family=job.shapes.architecture.family,
        checkpointing=plan.checkpointing,
        filling=None if job.target.loaded_by == "deepspeed" else _filling(job),
        notes=(decided, *([note] if note else []), *([_WHOLE] if split else []), *_left_out(job)),
    )


def _left_out(job: Job) -> list[str]:
    """What the spec asks of the code that trains, and the tiny model's does not do."""
    missing = not_scripted(job.training, job.shapes)
    return (
        [f"the tiny model is trained without what the spec asks of the code: {', '.join(missing)}"] if missing else []
    )


_WHOLE = (
    "tensor parallelism is left out: AutoTP splits classes of transformers, and the tiny decoder is none; the folder "
    "that build writes splits one (launch/torchrun.sh --size tiny)"
)


def _filling(job: Job) -> Filling:
    """The training arguments that build tells the user to pass."""
    plan, training = job.decision.chosen.plan, job.training
    return Filling(
        bf16=plan.precision == "bf16",
        fp16=plan.precision == "fp16",
        learning_rate=training.optimizer.lr,
        betas=training.optimizer.betas,
        eps=training.optimizer.eps,
        weight_decay=training.optimizer.weight_decay,
        max_grad_norm=training.gradient_clipping,
        micro_batch=plan.micro_batch,
        accumulation=plan.accumulation,
        warmup_steps=training.scheduler.warmup_steps if training.scheduler else 0,
    )
