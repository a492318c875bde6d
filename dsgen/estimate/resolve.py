"""The plan that a config amounts to: what it fixes, and for the rest what its library does by itself."""

from dataclasses import fields, replace
from typing import Any

from dsgen.estimate.batch import complete
from dsgen.formats.deepspeed.read.sizes import default_buckets, default_swap, keys_of
from dsgen.hardware import Hardware
from dsgen.plan import Checkpointing, Plan, Precision, Wishes, obeyed
from dsgen.planner.micro_batch import global_batch_of
from dsgen.reading import Reading, checkpointing_of
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Optimizer, Spec, Training
from dsgen.target import Target


def plan_of(
    reading: Reading, spec: Spec, shapes: Shapes, hardware: Hardware, target: Target, sequence_length: int
) -> tuple[Plan | None, tuple[str, ...]]:
    """The plan, and what was assumed; no plan where no micro-batch is known.

    Raises RefusedError where the batch sizes do not multiply.
    """
    wishes, notes = _with_split_sequences(reading.wishes, spec, target), list[str]()
    ranks = (wishes.tensor_parallel or 1) * (wishes.ulysses or 1) * (wishes.context_parallel or 1)
    data_parallel = max(1, hardware.world_size // (ranks * (wishes.pipeline_parallel or 1)))
    train = reading.get("training", "global_batch")
    accumulation = _first(wishes.accumulation, spec.want.get("accumulation"))
    if train is None and accumulation is None:
        train = global_batch_of(spec.training, sequence_length, 1)
        if train is None and "gradient_accumulation_steps" in reading.open:
            notes.append("gradient_accumulation_steps is open: accumulation 1 is assumed.")
    batch = complete(train, _first(wishes.micro_batch, spec.want.get("micro_batch")), accumulation, data_parallel)
    if batch is None:
        return None, ()
    precision = wishes.precision or _open_precision(spec, hardware, notes)
    version = target.version("deepspeed")
    base = Plan(
        world_size=hardware.world_size,
        gpus_per_node=hardware.gpus_per_node,
        zero_stage=0 if wishes.zero_stage is None else wishes.zero_stage,
        precision=precision,
        checkpointing=_checkpointing(wishes, spec, notes),
        micro_batch=batch.micro_batch,
        accumulation=batch.accumulation,
        buckets=replace(default_buckets(version), **_by_hidden(reading, shapes.architecture.hidden)),
        swap=default_swap(version),
    )
    kept = replace(wishes, micro_batch=None, accumulation=None, precision=None, checkpointing=None)
    return obeyed(base, kept), tuple(notes)


def training_of(reading: Reading, training: Training, plan: Plan) -> Training:
    """The training with what the config says of it."""
    known = {field.name for field in fields(Optimizer)}
    said = {each.path[-1]: each.value for each in reading.said if each.path[:2] == ("training", "optimizer")}
    if "betas" in said:
        said["betas"] = tuple(said["betas"])
    optimizer = replace(training.optimizer, **{name: value for name, value in said.items() if name in known})
    clipping = reading.get("training", "gradient_clipping")
    return replace(
        training,
        optimizer=optimizer,
        global_batch=plan.global_batch,
        global_tokens=None,
        gradient_clipping=training.gradient_clipping if clipping is None else clipping,
    )


def _with_split_sequences(wishes: Wishes, spec: Spec, target: Target) -> Wishes:
    """A DeepSpeed config does not say that the Trainer splits sequences (ParallelismConfig does); a spec does."""
    if wishes.ulysses is not None or target.format != "deepspeed":
        return wishes
    return replace(wishes, ulysses=_first(None, spec.want.get("ulysses")))


def _first(read: Any, stated: Any) -> int | None:
    found = read if read is not None else stated
    return found if isinstance(found, int) else None


def _open_precision(spec: Spec, hardware: Hardware, notes: list[str]) -> Precision:
    stated = spec.training.precision
    if stated != "auto":
        return stated
    precision: Precision = "bf16" if hardware.gpu.has_bf16 else "fp16"
    notes.append(f"The config leaves the compute type open: {precision} is assumed.")
    return precision


def _checkpointing(wishes: Wishes, spec: Spec, notes: list[str]) -> Checkpointing:
    if wishes.checkpointing is not None:
        return wishes.checkpointing
    stated = spec.want.get("checkpointing")
    if stated is not None:
        return checkpointing_of(stated)
    notes.append(
        "A config can't say what is checkpointed: nothing is assumed to be (--checkpointing full says otherwise)."
    )
    return Checkpointing("none")


def _by_hidden(reading: Reading, hidden: int) -> dict[str, int]:
    """What transformers and accelerate write over "auto", h being the model's width: h^2, 0.9 h^2 and 10 h elements
    (transformers/integrations/deepspeed.py:trainer_config_finalize; accelerate/accelerator.py:_prepare_deepspeed)."""
    sizes = {"reduce": hidden * hidden, "prefetch": int(0.9 * hidden * hidden), "persistence_threshold": 10 * hidden}
    keys = keys_of("buckets")
    return {name: size for name, size in sizes.items() if keys[name] in reading.open}
