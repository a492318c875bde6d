"""Says each rule of the schema that a document breaks as a person would."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dsgen.spec.faults import Fault
from dsgen.spec.schema import Schema, alternatives, describe, flat, homes, is_supported, meanings, scalar_type
from dsgen.spec.schema_walk import Typed
from dsgen.spec.values import KeyPath
from dsgen.spec.words import dotted, listed, shown
from dsgen.units import format_bytes

NOT_SUPPORTED = "not supported yet"


@dataclass(frozen=True, slots=True)
class Broken:
    """One keyword of the schema that a value does not meet."""

    keyword: str
    path: KeyPath
    limit: Any
    """What the keyword asks for."""
    value: Any
    schema: Schema
    message: str
    """In the words of jsonschema."""


def worded(broken: Broken, document: Typed) -> Iterator[Fault]:
    """The faults that it amounts to (an object may have several unknown keys)."""
    return WORDED.get(broken.keyword, _anything)(broken, document)


def _here(broken: Broken, document: Typed, message: str, help: str = "") -> Fault:
    return Fault(broken.path, document.places[broken.path], message, help)


def _text(broken: Broken, document: Typed) -> str:
    """The value as the user wrote it, a mapping by its type or its keys."""
    if broken.path in document.texts:
        return shown(document.texts[broken.path])
    if isinstance(broken.value, dict):
        inside = f"type: {broken.value['type']}" if "type" in broken.value else ", ".join(broken.value)
        return shown(f"{{{inside}}}", quote="")
    return "a list"


def _unknown_keys(broken: Broken, document: Typed) -> Iterator[Fault]:
    known = broken.schema["properties"]
    obeyed = tuple(key for key, schema in known.items() if is_supported(flat(schema)))
    where = dotted(broken.path) or "the spec"
    for key in broken.value:
        if key in known:
            continue
        below = (*broken.path, key)
        message = f"unknown key {shown(key)} in {where}"
        elsewhere = [home for home in homes().get(key, ()) if _near(home, broken.path)]
        if key == "<<":
            yield Fault(below, document.keys[below], "merge keys (<<) are not used in a spec", "write the keys out")
        elif partners := _forms_with(key, broken.path, document):
            yield Fault(below, document.keys[below], message, f"{key} goes with {listed(partners)}")
        elif elsewhere:
            help = f"{key} belongs {listed(f'under {home}' if home else 'at the top' for home in elsewhere)}"
            yield Fault(below, document.keys[below], message, help)
        elif meant := meanings().get(key.lower()):
            # One in this very mapping is likelier than all others.
            here = [path for path in meant if path.rpartition(".")[0] == dotted(broken.path)]
            yield Fault(below, document.keys[below], message, f"a spec says {listed(here or meant)}")
        else:
            helped = f"{', '.join(obeyed)}{_or_alone(broken, document)}"
            yield Fault(below, document.keys[below], message, helped, key, obeyed)


def _near(home: str, path: KeyPath) -> bool:
    """Whether a key that is known in ``home`` may stand at ``path`` by mistake: a section, or part of the same."""
    top = home.partition(".")[0]
    return home != dotted(path) and (top == home or top == dotted(path[:1]) or not path)


def _or_alone(broken: Broken, document: Typed) -> str:
    """The form without keys that the value may have instead."""
    alone = [form for form in alternatives(document.schemas[broken.path]) if "called" in form.get("x-dsgen", {})]
    return "".join(f"; or {form['x-dsgen']['called']} alone, without a mapping" for form in alone)


def _forms_with(key: str, path: KeyPath, document: Typed) -> list[str]:
    """The other forms of the same value that know the key."""
    forms = alternatives(document.schemas[path])
    return [describe(form) for form in forms if key in form.get("properties", {})]


def _missing(broken: Broken, document: Typed) -> Iterator[Fault]:
    for key in broken.limit:
        if key not in broken.value:
            example = flat(broken.schema["properties"][key])["examples"][0]
            message = f"{dotted(broken.path) or 'the spec'} has no {key}"
            place = document.places[broken.path]
            yield Fault((*broken.path, key), place, message, f"for example {key}: {_yaml(example)}")


def _yaml(value: Any) -> str:
    """A value of the schema as it is written in a spec."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _needed(broken: Broken, document: Typed) -> Iterator[Fault]:
    """anyOf of bare "required": one of several keys must stand there."""
    keys = [branch["required"][0] for branch in broken.limit]
    properties = broken.schema["properties"]
    examples = [f"{key}: {_yaml(flat(properties[key])['examples'][0])}" for key in keys]
    yield _here(broken, document, f"{dotted(broken.path)} needs {listed(keys)}", f"for example {listed(examples)}")


def _exclusive(broken: Broken, document: Typed) -> Iterator[Fault]:
    """ "not" of "required": keys that may not stand together."""
    keys = broken.limit["required"]
    places = {(*broken.path, key): document.keys[*broken.path, key] for key in keys}
    first, *_, last = sorted(places, key=lambda path: (places[path].line or 0, places[path].column or 0))
    message = f"{listed(keys, last='and')} exclude each other: {first[-1]} stands at {places[first]}"
    yield Fault(last, places[last], message, "keep one of them")


def _not_supported(broken: Broken, document: Typed) -> Iterator[Fault]:
    name, supported, place = dotted(broken.path), broken.limit["supported"], document.places[broken.path]
    what, help = f"{name}: {_text(broken, document)}", _only(supported)
    if supported is False and broken.path in document.forms:  # one form of several
        help = f"today: {describe(document.schemas[broken.path])}"
    elif supported is False or isinstance(broken.value, dict | list):
        what, place = name, document.keys[broken.path]
    yield Fault(broken.path, place, f"{what} is {NOT_SUPPORTED}", help, unsupported=True)


def _only(supported: Schema | bool) -> str:
    if isinstance(supported, bool):
        return "remove it"
    if "maximum" in supported:
        return f"today: at most {supported['maximum']}"
    if "enum" in supported or "const" in supported:
        return f"today: {listed(_yaml(value) for value in supported.get('enum', [supported.get('const')]))}"
    return "remove it"


_BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "below"}


def _bound(broken: Broken, document: Typed) -> Iterator[Fault]:
    name, text = dotted(broken.path), _text(broken, document)
    if scalar_type(flat(broken.schema)) == "bytes":
        message = f"{name}: {text} is less than {format_bytes(broken.limit)}"
        yield _here(broken, document, message, "give a unit: GiB is 2^30 bytes, GB is 10^9")
    else:
        yield _here(broken, document, f"{name} must be {_BOUNDS[broken.keyword]} {broken.limit}, not {text}")


def _kind(broken: Broken, document: Typed) -> Iterator[Fault]:
    got = "a mapping" if isinstance(broken.value, dict) else _text(broken, document)
    yield _here(broken, document, f"{dotted(broken.path)} must be {describe(flat(broken.schema))}, not {got}")


def _form(broken: Broken, document: Typed) -> Iterator[Fault]:
    schema = document.schemas[broken.path]
    example = f"for example {_yaml(schema['examples'][0])}" if "examples" in schema else ""
    message = f"{dotted(broken.path)}: {_text(broken, document)} does not have the right form"
    yield _here(broken, document, message, ": ".join(filter(None, [example, schema.get("description", "")])))


_COUNTED = {"Items": "item", "Length": "character", "Properties": "key"}


def _length(broken: Broken, document: Typed) -> Iterator[Fault]:
    bound, what = ("at least" if broken.keyword.startswith("min") else "at most"), _COUNTED[broken.keyword[3:]]
    plural = "" if broken.limit == 1 else "s"
    message = f"{dotted(broken.path)} needs {bound} {broken.limit} {what}{plural}, not {len(broken.value)}"
    yield _here(broken, document, message)


def _repeated(broken: Broken, document: Typed) -> Iterator[Fault]:
    yield _here(broken, document, f"{dotted(broken.path)} names the same thing twice", "keep one of them")


def _anything(broken: Broken, document: Typed) -> Iterator[Fault]:
    yield _here(broken, document, f"{dotted(broken.path)}: {shown(broken.message, quote='', longest=200)}")


WORDED: dict[str, Callable[[Broken, Typed], Iterator[Fault]]] = {
    "additionalProperties": _unknown_keys,
    "anyOf": _needed,
    "const": _kind,
    "enum": _kind,
    "exclusiveMaximum": _bound,
    "exclusiveMinimum": _bound,
    "maxItems": _length,
    "maxLength": _length,
    "maximum": _bound,
    "minItems": _length,
    "minLength": _length,
    "minProperties": _length,
    "minimum": _bound,
    "not": _exclusive,
    "pattern": _form,
    "required": _missing,
    "type": _kind,
    "uniqueItems": _repeated,
    "x-dsgen": _not_supported,
}
