"""What the spec says of its model becomes shapes."""

from dataclasses import replace

from dsgen.errors import InputError, Place, RefusedError
from dsgen.facts.models import Model, find_model, nearest_models
from dsgen.shapes.freeze import with_freeze
from dsgen.shapes.from_row import from_row
from dsgen.shapes.from_sizes import from_sizes
from dsgen.shapes.lora import with_method
from dsgen.shapes.values import Architecture, Shapes
from dsgen.spec.values import Spec, Training

DEFAULT_SEQUENCE_LENGTH = 4096


def shapes_of(spec: Spec) -> Shapes:
    """The tensors of the spec's model, as its method trains them, less what is frozen."""
    trained = with_method(_base(spec), spec.training.method, spec.place("training", "method", "targets"))
    return with_freeze(trained, spec.training.freeze, lambda at: spec.place("training", "freeze", at))


def _base(spec: Spec) -> Shapes:
    model = spec.model
    if model.sizes is not None:
        shapes = from_sizes(model.sizes, lambda key: spec.place("model", key))
        return shapes if model.factory is None else replace(shapes, name=model.factory, factory=model.factory)
    if model.path is not None:
        from dsgen.shapes.from_config import from_config

        return from_config(model.path, spec.place("model"))
    place = spec.place("model")
    return from_row(_row(model.name or "", place), place)


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
