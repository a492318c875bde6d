"""Validates a typed document with jsonschema: every rule that it breaks, as faults."""

from collections.abc import Iterable, Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from dsgen.spec.faults import Fault
from dsgen.spec.schema import Schema, spec_schema
from dsgen.spec.schema_walk import Typed
from dsgen.spec.wording import NOT_SUPPORTED, Broken, worded


def _supported(validator: Any, extension: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    """x-dsgen.supported is a schema: what is valid but outside it is not obeyed by anything yet."""
    if not validator.evolve(schema=extension.get("supported", True)).is_valid(instance):
        yield ValidationError(NOT_SUPPORTED)


_VALIDATOR: Any = extend(Draft202012Validator, {"x-dsgen": _supported})  # type: ignore[no-untyped-call]


def faults_of(document: Typed) -> list[Fault]:
    """Everything that is wrong with the document; a place that could not even be typed is named once."""
    untyped = {fault.path for fault in document.faults}
    found = [*document.faults]
    for broken in _leaves(_VALIDATOR(spec_schema()).iter_errors(document.value), document):
        if broken.path not in untyped:
            found += worded(broken, document)
    # jsonschema reports a missing key once for every key that is missing there.
    return _without_noise(list(dict.fromkeys(found)))


def _without_noise(found: list[Fault]) -> list[Fault]:
    """Leaves out what is malformed inside something unsupported, and that something malformed is unsupported too."""
    unsupported = {fault.path for fault in found if fault.unsupported}
    malformed = {fault.path for fault in found if not fault.unsupported}
    return [
        fault
        for fault in found
        if not (fault.unsupported and fault.path in malformed)
        and not any(fault.path[:end] in unsupported for end in range(len(fault.path)))
    ]


def _leaves(errors: Iterable[Any], document: Typed) -> Iterator[Broken]:
    """Errors, with that of "none of the alternatives" replaced by those of the alternative that was meant."""
    for error in errors:
        path = tuple(error.absolute_path)
        if not error.context or _is_condition(error.validator_value):
            yield Broken(error.validator, path, error.validator_value, error.instance, error.schema, error.message)
        elif path in document.forms:
            meant = document.forms[path]
            yield from _leaves([inner for inner in error.context if inner.schema_path[0] == meant], document)
        # Otherwise the walk found no alternative that is meant, and has said so.


def _is_condition(branches: Iterable[Schema]) -> bool:
    """Whether anyOf only asks for one of several keys."""
    return all(set(branch) == {"required"} for branch in branches)
