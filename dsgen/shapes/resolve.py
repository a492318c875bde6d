"""What the spec says of its model becomes shapes."""

from dataclasses import replace
from pathlib import Path

from dsgen.errors import InputError, Place, RefusedError
from dsgen.facts.models import Model, find_model, nearest_models
from dsgen.shapes.freeze import with_freeze
from dsgen.shapes.from_row import from_row
from dsgen.shapes.from_sizes import from_sizes
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Architecture, Shapes
from dsgen.spec.values import ModelSizes, Spec, Training

DEFAULT_SEQUENCE_LENGTH = 4096


def shapes_of(spec: Spec, *, runs: bool = False) -> Shapes:
    """The tensors of the spec's model, as its method trains them, less what is frozen.

    ``runs``: a model that only code knows is made, in a process of its own (dsgen/shapes/measured.py). Only for
    commands that are asked about this model; whoever only looks at files refuses it.
    """
    trained = with_method(_base(spec, runs=runs), spec.training.method, spec.place("training", "method", "targets"))
    return with_freeze(trained, spec.training.freeze, lambda at: spec.place("training", "freeze", at))


def _base(spec: Spec, *, runs: bool) -> Shapes:
    model = spec.model
    if model.factory is not None and model.sizes == ModelSizes():
        return _of_factory(spec, model.factory, runs=runs)
    if model.sizes is not None:
        shapes = from_sizes(model.sizes, lambda key: spec.place("model", key))
        return shapes if model.factory is None else replace(shapes, name=model.factory, factory=model.factory)
    if model.path is not None:
        from dsgen.shapes.from_config import UnknownClassError, from_config

        try:
            return from_config(model.path, spec.place("model"))
        except UnknownClassError:
            if not runs:
                raise
            from dsgen.shapes.measured import of_config

            return of_config(model.path, spec.place("model"))
    place = spec.place("model")
    return from_row(_row(model.name or "", place), place)


def _of_factory(spec: Spec, factory: str, *, runs: bool) -> Shapes:
    place = spec.place("model", "factory")
    if not runs:
        raise InputError.at(
            f"what {factory} makes is known only once it is called, and nothing is called here",
            place,
            "write parameters beside it, and layers, hidden, vocab and more as far as you know them",
        )
    from dsgen.shapes.measured import of_factory

    return of_factory(factory, Path(spec.file).parent, place)


def _row(name: str, place: Place) -> Model:
    model = find_model(name)
    if model is None:
        close = nearest_models(name)
        suggestion = f"did you mean {', '.join(close)}? " if close else ""
        raise InputError.at(
            f"no model is called {name!r}",
            place,
            f"{suggestion}dsgen show models lists all; or give a folder with config.json, or {{parameters: 7B}}",
        )
    return model


def sequence_length_of(
    training: Training, architecture: Architecture, place: Place | None = None
) -> tuple[int, str | None]:
    """Tokens per sequence, and a note where it was assumed or reaches beyond the model's positions."""
    limit = architecture.max_positions
    if training.sequence_length is None:
        length = min(DEFAULT_SEQUENCE_LENGTH, limit or DEFAULT_SEQUENCE_LENGTH)
        return length, f"sequence_length not given: {length} assumed"
    length = training.sequence_length
    if limit is None or length <= limit:
        return length, None
    if architecture.positional == "learned":
        raise RefusedError.at(
            f"sequence_length {length} is beyond the model's {limit} learned positions",
            place,
            f"write at most {limit}: there is no embedding for a later position",
        )
    return length, f"sequence_length {length} is beyond the {limit} positions that the model was trained for"
