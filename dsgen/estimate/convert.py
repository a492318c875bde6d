"""One format to another: what was read, written again; what the other can't say is named."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dsgen.errors import Place, Problem, RefusedError, printable
from dsgen.estimate.estimate import Estimate
from dsgen.formats import writer
from dsgen.formats.values import NotCarried, Written
from dsgen.plan import Plan, ZeroPP
from dsgen.planner.buckets import bucket_reasons, buckets_of, swap_of
from dsgen.spec.values import Scheduler, Training
from dsgen.target import Format, Loader, Target

_SAYS_NOTHING = "it has no meaning there"
_ONLY_DEEPSPEED = ("buckets", "swap", "overlap_comm", "zeropp")


def converted(found: Estimate, to: Format, loaded_by: Loader, *, folder: bool) -> Written:
    """The files of the other format.

    Raises RefusedError where both are the same, or the plan is not legal there.
    """
    inputs, old = found.inputs, found.inputs.target
    if to == old.format:
        raise RefusedError(Problem(f"is {to} already", Place(inputs.spec.file), "another --to"))
    target = Target(format=to, loaded_by=loaded_by, versions=old.versions)
    training = _training(found)
    plan = _plan(found, to)
    written: Written = writer(to).write(
        plan,
        inputs.shapes,
        training,
        target,
        inputs.hardware,
        inputs.sequence_length,
        bucket_reasons=bucket_reasons(plan, inputs.shapes),
        folder=folder,
    )
    return replace(written, not_carried=(*written.not_carried, *_left(found, to)))


def _plan(found: Estimate, to: Format) -> Plan:
    """The same layout; of what only one of the formats has, the other's own."""
    plan = found.candidate.plan
    if to == "deepspeed":
        shapes = found.inputs.shapes
        own = replace(
            plan,
            buckets=buckets_of(shapes, plan.shards, plan.offload_optimizer),
            swap=swap_of(shapes, plan.shards),
            overlap_comm=plan.world_size > 1,
            reduce_each_micro_batch=False,
        )
        # A group of all ranks is no group; sums of one micro-batch are no sums.
        whole = plan.shard_group in (None, plan.world_size)
        return replace(own, shard_group=None if whole else plan.shard_group)
    own = replace(plan, overlap_comm=None, zeropp=ZeroPP())
    # FSDP2 as dsgen writes it reduces, and adds up, in fp32.
    return replace(own, gradient_precision="fp32" if plan.precision != "fp32" else None)


def _training(found: Estimate) -> Training:
    """With the schedule, which changes no byte and so is no matter of an account."""
    section = {each.path[-1]: each.value for each in found.reading.said if each.path[:2] == ("training", "scheduler")}
    training = found.inputs.training
    named: dict[str, Any] = {"type": section["type"]} if "type" in section else {}
    if "total_steps" in section or section.get("type") == "constant":
        known = {name: section[name] for name in ("warmup_steps", "total_steps", "min_lr_ratio") if name in section}
        training = replace(training, scheduler=Scheduler(**known, **named))
    return training


def _left(found: Estimate, to: Format) -> Iterator[NotCarried]:
    """What the file says and the other format can't."""
    reading = found.reading
    for each in reading.not_carried:
        yield NotCarried(printable(each.key), _harmless(each.value), "nothing: leave it out", printable(each.why))
    for key, value in _leaves(reading.passthrough):
        yield NotCarried(printable(key), value, "your own code", f"{to} has no such setting")
    if to == "deepspeed":
        return
    plan = found.candidate.plan
    if plan.precision != "fp32" and plan.accumulation > 1 and not plan.sums_apart:
        why = "FSDP2 as dsgen writes it reduces and adds up in fp32, which rounds less and takes more memory"
        yield NotCarried("data_types.grad_accum_dtype", plan.precision, "nothing: sums are fp32 there", why)
    for said in reading.said:
        if (
            said.path[0] == "want"
            and said.path[1] in _ONLY_DEEPSPEED
            and said.at is not None
            and said.value is not False
        ):
            yield NotCarried(".".join(map(str, said.at)), said.value, "nothing: leave it out", _SAYS_NOTHING)


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        here = (*path, key)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield ".".join(here), _harmless(value)


def _harmless(value: Any) -> Any:
    """Text that commands nothing to a terminal; whatever is no text is shown as JSON."""
    return printable(value) if isinstance(value, str) else value
