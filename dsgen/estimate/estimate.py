"""The account of a config that exists already: its plan's ledger and step time, on stated machines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from dsgen.errors import InputError, Place, Problem, RefusedError, printable
from dsgen.estimate import flags as from_flags
from dsgen.estimate.document import Named
from dsgen.estimate.resolve import plan_of, training_of
from dsgen.formats.deepspeed.read import read
from dsgen.formats.fsdp2.read import read as read_code
from dsgen.hardware import Hardware, hardware_of
from dsgen.legality.check import broken, explain
from dsgen.legality.values import Case, Row
from dsgen.memory.account import account
from dsgen.memory.fit import fit
from dsgen.plan import Plan
from dsgen.planner.job import Inputs
from dsgen.planner.longest import longest
from dsgen.planner.values import Candidate
from dsgen.reading import Reading
from dsgen.shapes.resolve import sequence_length_of, shapes_of
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Spec, Training
from dsgen.steptime.account import step_time
from dsgen.target import Format, Loader, Target, unknown_versions

_OWN = "dsgen itself"
"""How the source of a legality row starts that says what dsgen does not write; a config may well have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One config's account."""

    inputs: Inputs
    candidate: Candidate
    reading: Reading
    notes: tuple[str, ...]
    illegal: tuple[Row, ...]
    """Rules that the libraries hold and the plan breaks: it would not run, or not so."""


def estimate(named: Named, flags: Mapping[str, Any], base: Spec | None, versions: Mapping[str, str]) -> Estimate:
    """The estimate of a DeepSpeed config, or of FSDP2 code.

    Raises InputError where something that has to be known is not (all of it in one message), RefusedError where the
    batch sizes do not multiply.
    """
    flags = _with_accelerate(flags, named, base)
    target, notes = _target(named, flags, base, versions)
    reading = _reading(named, target)
    asked = from_flags.missing(flags, base)
    if asked:
        asked += [] if _may_know_the_batch(reading, flags, base) else [_asked_batch(reading, named)]
        raise _missing(named.name, asked)
    _no_contradiction(reading, flags, named.name)
    spec, assumed = from_flags.spec_of(flags, base, named.name)
    if spec.training.sequence_length is None:
        spec = replace(
            spec, training=replace(spec.training, sequence_length=reading.get("training", "sequence_length"))
        )
    shapes, hardware = shapes_of(spec, runs=True), _with_path(hardware_of(spec), reading)
    length, note = _length(reading, spec, shapes, hardware, target, named)
    plan, guessed = _plan(reading, spec, shapes, hardware, target, named, length)
    if plan is None:
        raise _missing(named.name, [_asked_batch(reading, named)])
    training = training_of(reading, spec.training, plan)
    spec = replace(spec, training=training)
    case = Case(plan=plan, shapes=shapes, training=training, hardware=hardware, target=target)
    inputs = Inputs(
        spec=spec,
        wishes=reading.wishes,
        shapes=shapes,
        hardware=hardware,
        target=target,
        sequence_length=length,
        notes=(),
    )
    left = (printable(f"{named.name}: {each.key} is not in this account: {each.why}") for each in reading.not_carried)
    return Estimate(
        inputs=inputs,
        candidate=_weigh(plan, shapes, training, length, hardware, target),
        reading=reading,
        notes=(
            *shapes.notes,
            *hardware.notes,
            *unknown_versions(target),
            *([note] if note else []),
            *notes,
            *assumed,
            *guessed,
            *left,
        ),
        illegal=tuple(row for row in broken(case) if not row.source.startswith(_OWN)),
    )


def _reading(named: Named, target: Target) -> Reading:
    if named.code is not None:
        return read_code(named.code)
    if named.by_accelerate is not None and target.format != "deepspeed":
        return named.by_accelerate.reading
    return read(named.document, target)


def _length(
    reading: Reading, spec: Spec, shapes: Shapes, hardware: Hardware, target: Target, named: Named
) -> tuple[int, str | None]:
    """Tokens per sequence, and what to say of them; ``max`` is the longest with which the config fits."""
    if not spec.training.longest or spec.training.sequence_length is not None:
        return sequence_length_of(spec.training, shapes.architecture, spec.place("training", "sequence_length"))

    def fits(tokens: int) -> bool:
        plan, _ = _plan(reading, spec, shapes, hardware, target, named, tokens)
        if plan is None:
            return False
        training = training_of(reading, spec.training, plan)
        return _weigh(plan, shapes, training, tokens, hardware, target).fit.fits

    return longest(spec.training, shapes.architecture, fits)


def _plan(
    reading: Reading,
    spec: Spec,
    shapes: Shapes,
    hardware: Hardware,
    target: Target,
    named: Named,
    sequence_length: int,
) -> tuple[Plan | None, tuple[str, ...]]:
    """The plan; what is refused of it with the place of the first batch size."""
    if named.by_accelerate is not None and named.by_accelerate.hybrid:
        # One copy of the states in each node (torch/distributed/fsdp/_init_utils.py:_init_intra_and_inter_node_groups).
        reading = replace(reading, wishes=replace(reading.wishes, shard_group=hardware.gpus_per_node))
    try:
        return plan_of(reading, spec, shapes, hardware, target, sequence_length)
    except RefusedError as error:
        member = named.document.member(("train_batch_size",))
        at = named.document.lines.place(member.key_start) if member is not None else (None, None)
        place = Place(named.name, *at)
        raise RefusedError(*(replace(problem, place=place) for problem in error.problems)) from None


def refused(estimate: Estimate) -> RefusedError | None:
    """What a person has to hear of a config that does not run, by the first rule that forbids it."""
    if not estimate.illegal:
        return None
    row = estimate.illegal[0]
    message = f"{explain(row, estimate.candidate.plan)} [{row.name}]"
    return RefusedError(Problem(message, Place(estimate.inputs.spec.file)))


def _weigh(
    plan: Plan, shapes: Shapes, training: Training, length: int, hardware: Hardware, target: Target
) -> Candidate:
    ledger = account(plan, shapes, training, length, hardware, target)
    time = step_time(plan, shapes, training, length, hardware, target)
    return Candidate(plan=plan, ledger=ledger, fit=fit(ledger, hardware), time=time)


def _with_accelerate(flags: Mapping[str, Any], named: Named, base: Spec | None) -> Mapping[str, Any]:
    """Accelerate's config says who loads it, and how many processes there are; flags and a spec know better."""
    found = named.by_accelerate
    if found is None:
        return flags
    given = dict(flags)
    if given.get("loaded_by") is None:
        given["loaded_by"] = "accelerate"
    if given.get("world_size") is None and base is None and found.world_size is not None:
        nodes = next((each.value for each in found.said if each.path == ("hardware", "nodes")), 1)
        given["world_size"] = found.world_size
        if given.get("gpus_per_node") is None and found.world_size % nodes == 0:
            given["gpus_per_node"] = found.world_size // nodes
    return given


def _target(
    named: Named, flags: Mapping[str, Any], base: Spec | None, versions: Mapping[str, str]
) -> tuple[Target, list[str]]:
    loader, notes = flags.get("loaded_by"), []
    stated = {} if base is None else dict(base.target.versions)
    if loader is None and base is not None and ("target", "loaded_by") in base.places:
        loader = base.target.loaded_by
    if loader is None:
        is_open = '"auto"' in named.document.text
        loader = "transformers" if is_open else "deepspeed"
        if is_open:
            notes.append('"auto" in the config: it is taken to be loaded by transformers (--loaded-by says otherwise).')
    format_: Format = "deepspeed" if named.code is None else "fsdp2"
    if named.by_accelerate is not None and named.by_accelerate.framework is not None:
        format_ = named.by_accelerate.framework
    return Target(format=format_, loaded_by=cast(Loader, loader), versions={**stated, **versions}), notes


def _may_know_the_batch(reading: Reading, flags: Mapping[str, Any], base: Spec | None) -> bool:
    known = reading.wishes.micro_batch or reading.get("training", "global_batch") or flags.get("micro_batch")
    return bool(known or (base is not None and base.want.get("micro_batch")))


def _asked_batch(reading: Reading, named: Named) -> str:
    if named.code is not None:
        return "--micro-batch (the code writes none out)"
    if named.by_accelerate is not None and not named.document.text:
        return "--micro-batch (accelerate's config has none)"
    word = "auto" if "train_micro_batch_size_per_gpu" in reading.open else "not there"
    return f"--micro-batch (train_micro_batch_size_per_gpu is {word})"


def _missing(name: str, asked: list[str]) -> InputError:
    message = f"this alone gives no account; still needed: {', '.join(asked)}"
    return InputError(Problem(message, Place(name), "or --spec spec.yaml, which says all of it"))


def _no_contradiction(reading: Reading, flags: Mapping[str, Any], name: str) -> None:
    read_, flag = reading.wishes.micro_batch, flags.get("micro_batch")
    if read_ is not None and flag is not None and str(read_) != str(flag):
        message = f"--micro-batch {flag}, but the file's train_micro_batch_size_per_gpu is {read_}"
        raise InputError.at(message, Place(name), "leave the flag out, or change the file")


def _with_path(hardware: Hardware, reading: Reading) -> Hardware:
    path = reading.get("hardware", "nvme", "path")
    return hardware if path is None else replace(hardware, nvme_path=path)
