"""Gathers what a spec says, what is looked up and what is decided: the one thing that every command starts from."""

from dataclasses import dataclass, fields, replace

from dsgen.errors import Problem, RefusedError
from dsgen.hardware import Hardware, hardware_of
from dsgen.plan import Wishes
from dsgen.planner.changes import helpful_changes
from dsgen.planner.decide import decide, feasible
from dsgen.planner.longest import longest
from dsgen.planner.refusal import IllegalPlanError, NothingFitsError, WishError
from dsgen.planner.values import Decision
from dsgen.planner.wishes import wishes_of
from dsgen.shapes.resolve import sequence_length_of, shapes_of
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Spec, Training
from dsgen.target import Target, target_of, unknown_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything that a decision rests on."""

    spec: Spec
    wishes: Wishes
    shapes: Shapes
    hardware: Hardware
    target: Target
    sequence_length: int
    notes: tuple[str, ...]
    """What was inferred or assumed on the way."""

    @property
    def training(self) -> Training:
        return self.spec.training


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Inputs):
    """A spec, everything it rests on, and what was decided."""

    decision: Decision


def inputs_of(spec: Spec) -> Inputs:
    """Looks everything up; raises InputError or RefusedError where the spec names what does not exist."""
    shapes = shapes_of(spec, runs=True)
    hardware = hardware_of(spec)
    target = target_of(spec)
    wishes = wishes_of(spec)
    note: str | None
    if spec.training.longest:
        length, note = longest(
            spec.training,
            shapes.architecture,
            lambda tokens: feasible(wishes, shapes, hardware, spec.training, tokens, target),
        )
    else:
        length, note = sequence_length_of(spec.training, shapes.architecture, spec.place("training", "sequence_length"))
    return Inputs(
        spec=spec,
        wishes=wishes,
        shapes=shapes,
        hardware=hardware,
        target=target,
        sequence_length=length,
        notes=(*shapes.notes, *hardware.notes, *unknown_versions(target), *([note] if note else [])),
    )


def decide_spec(spec: Spec) -> Job:
    """The whole way from a spec to a decision."""
    return decide_job(inputs_of(spec))


def decide_job(inputs: Inputs) -> Job:
    """Decides for what was gathered.

    Raises RefusedError: an illegal wish with its place, and where nothing fits (NothingFitsError) with the
    changes that would help.
    """
    try:
        decision = _decide(inputs)
    except IllegalPlanError as error:
        raise _placed(error, inputs.spec) from None
    except WishError as error:
        (problem,) = error.problems
        raise RefusedError.at(problem.message, inputs.spec.place(*error.path), problem.help) from None
    except NothingFitsError as error:
        raise NothingFitsError(error.closest, error.rejected, _help(inputs), error.format) from None
    known = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
    return Job(**known, decision=replace(decision, notes=(*inputs.notes, *decision.notes)))


def _decide(inputs: Inputs) -> Decision:
    return decide(*_known(inputs))


def _known(inputs: Inputs) -> tuple[Wishes, Shapes, Hardware, Training, int, Target]:
    return (
        inputs.wishes,
        inputs.shapes,
        inputs.hardware,
        inputs.training,
        inputs.sequence_length,
        inputs.target,
    )


def _help(inputs: Inputs) -> str:
    changes = helpful_changes(inputs.spec, inputs.sequence_length, inputs.hardware, _decided)
    if not changes:
        return (
            "no change of sequence length, method or machines that was tried makes it fit, nor do two of them together"
        )
    return "any one of these makes it fit: " + "; ".join(changes)


def _decided(spec: Spec) -> Decision:
    """The decision for a changed spec; RefusedError, and quickly, where it does not help."""
    inputs = inputs_of(spec)
    if not feasible(*_known(inputs)):
        raise RefusedError.at("this does not fit either")
    return _decide(inputs)


def _placed(error: IllegalPlanError, spec: Spec) -> RefusedError:
    """The same problems, each pointing at the first wish that its rule is about."""
    problems = []
    for problem, row in zip(error.problems, error.rows, strict=True):
        written = [
            path for field in row.fields for path in (("want", field), ("training", field)) if path in spec.places
        ]
        place = spec.place(*written[0]) if written else None
        problems.append(Problem(problem.message, place, problem.help))
    return RefusedError(*problems)
