"""Types a document by the schema: which form a value takes, and each scalar's text as a value."""

from collections.abc import Sequence as List
from dataclasses import dataclass, field
from typing import Any

from dsgen.errors import Place
from dsgen.spec.document import Mapping, Node, Scalar, Sequence, plain
from dsgen.spec.faults import Fault
from dsgen.spec.scalars import DESCRIPTIONS, PARSERS
from dsgen.spec.schema import (
    Schema,
    alternatives,
    describe,
    flat,
    is_supported,
    json_types,
    scalar_type,
    supported_words,
    words_of,
)
from dsgen.spec.values import KeyPath
from dsgen.spec.words import dotted, listed, shown


@dataclass(slots=True)
class Typed:
    """A typed document, and what the messages about it need."""

    value: Any = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    """Path to the place of its value."""
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    """Path to the place of its key."""
    texts: dict[KeyPath, str] = field(default_factory=dict)
    """Path to the user's text."""
    forms: dict[KeyPath, int] = field(default_factory=dict)
    """Path to which of the schema's alternatives its value takes."""
    schemas: dict[KeyPath, Schema] = field(default_factory=dict)
    """Path to the schema of its value, alternatives and all."""
    faults: list[Fault] = field(default_factory=list)

    def fault(self, path: KeyPath, message: str, help: str = "", word: str = "", known: List[str] = ()) -> None:
        self.faults.append(Fault(path, self.places[path], message, help, word, tuple(known)))


def typed(root: Mapping, schema: Schema) -> Typed:
    """The document as the schema reads it; a value that cannot be typed keeps its text and has a fault."""
    out = Typed()
    out.value = _value(root, schema, (), out)
    return out


def _value(node: Node, schema: Schema, path: KeyPath, out: Typed) -> Any:
    schema = flat(schema)
    out.places[path], out.schemas[path] = node.place, schema
    if isinstance(node, Scalar):
        out.texts[path] = node.text
        if node.is_null:
            return _nothing(schema, path, out)
    if forms := alternatives(schema):
        form = _form(node, schema, forms, path, out)
        if form is None:
            return plain(node)
        out.forms[path] = form
        return _typed_as(node, forms[form], path, out)
    return _typed_as(node, schema, path, out)


def _typed_as(node: Node, schema: Schema, path: KeyPath, out: Typed) -> Any:
    """The value, once it is clear which form it takes."""
    match node:
        case Mapping():
            return _mapping(node, schema, path, out)
        case Sequence():
            items = schema.get("items", {})
            return [_value(item, items, (*path, at), out) for at, item in enumerate(node.items)]
        case Scalar():
            return _scalar(node, schema, path, out)


def _nothing(schema: Schema, path: KeyPath, out: Typed) -> Any:
    if "null" in json_types(schema):  # "want:" with every line below it commented out
        return {}
    out.fault(path, f"{dotted(path)} has no value", f"write {describe(schema)}, or remove the key")
    return None


def _mapping(node: Mapping, schema: Schema, path: KeyPath, out: Typed) -> dict[str, Any]:
    value = {}
    properties = schema.get("properties", {})
    for key, entry in node.entries.items():
        below = (*path, key)
        out.keys[below] = entry.key
        value[key] = _value(entry.value, properties.get(key, _ANYTHING), below, out)
    return value


# What the schema says nothing about stays text: unknown keys, a launcher's own settings.
_ANYTHING: Schema = {"type": ["string", "object", "array", "null"]}


def _scalar(node: Scalar, schema: Schema, path: KeyPath, out: Typed) -> Any:
    if words := words_of(schema):
        # "AdamW" and "BF16" leave no doubt; the schema's spelling goes on.
        same = next((word for word in words if word.lower() == node.text.lower()), None)
        if same is None:
            allowed = supported_words(schema) or words
            out.fault(path, f"{dotted(path)}: {shown(node.text)} is not known", listed(allowed), node.text, allowed)
        return node.text if same is None else same
    if not {"object", "array"}.isdisjoint(json_types(schema)):
        return node.text  # the wrong kind altogether: the validator says so
    wanted = scalar_type(schema)
    try:
        return PARSERS[wanted](node.text)
    except ValueError as error:
        out.fault(path, f"{dotted(path)}: {shown(node.text)}: {error}", f"write {DESCRIPTIONS[wanted]}")
        return node.text


def _form(node: Node, schema: Schema, forms: list[Schema], path: KeyPath, out: Typed) -> int | None:
    """Which alternative the value is meant as; None, with a fault, where it is none of them."""
    of_kind = [at for at, form in enumerate(forms) if _takes(form, node)]
    if isinstance(node, Mapping) and of_kind:
        return _mapping_form(node, forms, of_kind, path, out)
    if isinstance(node, Scalar):
        for at in of_kind:
            if any(word.lower() == node.text.lower() for word in words_of(forms[at])):
                return at
        open_forms = [at for at in of_kind if not words_of(forms[at])]
        for at in open_forms:
            if _parses(node.text, forms[at]):
                return at
        words = [word for at in of_kind for word in supported_words(forms[at])]
        message = f"{dotted(path)}: {shown(node.text)} is not allowed"
        if meant := _as_mapping(forms, node):
            out.fault(path, message, meant)
        else:
            out.fault(path, message, describe(schema), node.text, words)
        return None
    if of_kind:
        return of_kind[0]
    kind = "a mapping" if isinstance(node, Mapping) else "a list"
    out.fault(path, f"{dotted(path)} cannot be {kind}", f"write {describe(schema)}")
    return None


def _takes(form: Schema, node: Node) -> bool:
    types = json_types(form)
    match node:
        case Mapping():
            return "object" in types
        case Sequence():
            return "array" in types
        case Scalar():
            return "object" not in types and "array" not in types


def _parses(text: str, form: Schema) -> bool:
    try:
        PARSERS[scalar_type(form)](text)
    except ValueError:
        return False
    return True


def _type(form: Schema) -> Schema:
    """The schema of the form's ``type`` key, by whose words forms are told apart."""
    return flat(form.get("properties", {}).get("type", {}))


def _as_mapping(forms: list[Schema], node: Scalar) -> str:
    """Help for ``optimizer: adamw`` where {type: adamw} is meant."""
    for form in forms:
        for word in words_of(_type(form)):
            if word.lower() == node.text.lower():
                return f"write {{type: {word}}}"
    return ""


def _mapping_form(node: Mapping, forms: list[Schema], of_kind: list[int], path: KeyPath, out: Typed) -> int | None:
    by_type = {word.lower(): at for at in of_kind for word in words_of(_type(forms[at]))}
    if not by_type:
        # The form that knows most of the keys; the first of equals.
        return max(of_kind, key=lambda at: len(node.entries.keys() & forms[at].get("properties", {}).keys()))
    entry = node.entries.get("type")
    if entry is None:
        # Only a form whose type has a default may leave it out, and it stands first.
        return of_kind[0]
    text = entry.value.text if isinstance(entry.value, Scalar) else ""
    if text.lower() not in by_type:
        below = (*path, "type")
        out.places[below] = entry.value.place
        obeyed = [_type(forms[at]) for at in of_kind if is_supported(forms[at])]
        allowed = [word for form in obeyed for word in supported_words(form)]
        what = shown(text) if isinstance(entry.value, Scalar) else "this"
        out.fault(below, f"{dotted(below)}: {what} is not known", listed(allowed), text, allowed)
        return None
    return by_type[text.lower()]
