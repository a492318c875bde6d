"""YAML as a tree of the user's own text with places; nothing is constructed and no scalar is typed here.

PyYAML's composer gives the nodes. What a spec has no use for and what can be abused (aliases, tags, several
documents, great depth) is refused with its place.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from dsgen.errors import InputError, Place, Problem
from dsgen.spec.faults import Fault, input_error
from dsgen.spec.source import Source, holds_forbidden
from dsgen.spec.words import shown

DEEPEST = 32
"""Levels of nesting; the schema knows five."""

MOST_NODES = 4000
"""Keys and values in all; the schema knows about a hundred keys."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as the user wrote it, quotes and escapes resolved."""

    text: str
    place: Place
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        return not self.quoted and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple["Node", ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place, and its value."""

    key: Place
    value: "Node"


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys to values, in the order of the file."""

    entries: dict[str, Entry]
    place: Place


Node = Scalar | Sequence | Mapping


def plain(node: Node) -> Any:
    """The node as plain Python, every scalar as its text."""
    match node:
        case Scalar():
            return node.text
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {key: plain(entry.value) for key, entry in node.entries.items()}


def set_text(tree: Mapping, path: tuple[str, ...], text: str) -> None:
    """Puts another scalar at a path, or none where ``text`` is empty; mappings on the way are made.

    Its place is the command line: what is wrong with it stands nowhere in the file.
    """
    said = Place("--sweep")
    *above, key = path
    for name in above:
        entry = tree.entries.get(name)
        if entry is None or not isinstance(entry.value, Mapping):
            entry = tree.entries[name] = Entry(tree.place, Mapping({}, tree.place))
        assert isinstance(entry.value, Mapping), "made above"
        tree = entry.value
    if text:
        tree.entries[key] = Entry(said, Scalar(text, said))
    else:
        tree.entries.pop(key, None)


class _Composer(yaml.SafeLoader):
    """Composes one document, refusing what a spec has no use for while it is still cheap."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError(event.start_mark, "aliases are not used in a spec", "write the value itself here")
        if getattr(event, "tag", None) is not None:
            raise _RefusedError(event.start_mark, f"tags are not used in a spec: {shown(event.tag)}", "remove the tag")
        self.depth += 1
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise _RefusedError(event.start_mark, f"more than {MOST_NODES} keys and values: this is no spec", None)
        if self.depth > DEEPEST:
            raise _RefusedError(event.start_mark, f"nested more than {DEEPEST} levels deep", None)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Mark(Protocol):
    """Where PyYAML stands, counted from 0."""

    index: int
    line: int
    column: int


class _RefusedError(Exception):
    def __init__(self, mark: Mark | None, message: str, help: str | None) -> None:
        super().__init__(message)
        self.mark, self.message, self.help = mark, message, help


def parse(source: Source) -> Mapping:
    """The document's root mapping. Every duplicate key and impossible value is reported at once."""
    root = _compose(source)
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        raise InputError.at("the spec is empty", Place(source.file), "it needs at least model and hardware")
    faults: list[Fault] = []
    tree = _tree(root, source.file, faults)
    if not isinstance(tree, Mapping):
        kind = "a list" if isinstance(tree, Sequence) else f"the text {shown(tree.text)}"
        message = f"a spec is a mapping of keys to values, not {kind}"
        raise InputError.at(message, tree.place, "it starts with, for example, model: llama-3.1-8b")
    if faults:
        raise input_error(faults)
    return tree


def _compose(source: Source) -> yaml.Node | None:
    loader = _Composer(source.text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    except _RefusedError as refused:
        raise InputError.at(refused.message, _place(source.file, refused.mark), refused.help) from None
    except yaml.MarkedYAMLError as error:
        raise _malformed(source, error) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML makes numbers of escapes and directives unchecked: "\UFFFFFFFF", %YAML 9...9.
        place = _place(source.file, loader.get_mark())
        raise InputError.at("not valid YAML: a number here is out of all bounds", place) from None
    finally:
        loader.dispose()
    return root


def _place(file: str, mark: Mark | None) -> Place:
    return Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)


def _fault(place: Place, message: str, help: str = "") -> Fault:
    return Fault((), place, message, help)


def _tree(node: yaml.Node, file: str, faults: list[Fault]) -> Node:
    place = _place(file, node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        if holds_forbidden(node.value):
            faults.append(_fault(place, f"a character that has no place in a spec: {shown(node.value)}"))
        elif node.style != '"' and "\n" in node.value:
            # A path may hold a line break, written as the escape \n; other lines flowed in by accident.
            faults.append(_fault(place, f"a value of several lines: {shown(node.value)}", "write it in one line"))
        return Scalar(node.value, place, quoted=node.style is not None)
    if isinstance(node, yaml.SequenceNode):
        return Sequence(tuple(_tree(item, file, faults) for item in node.value), place)
    entries: dict[str, Entry] = {}
    for key_node, value_node in node.value:
        key_place = _place(file, key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            faults.append(_fault(key_place, "a key must be a plain word, not a list or mapping"))
            continue
        key, value = key_node.value, _tree(value_node, file, faults)
        if holds_forbidden(key):
            faults.append(_fault(key_place, f"a character that has no place in a spec: {shown(key)}"))
        elif key in entries:
            first = entries[key].key
            faults.append(_fault(key_place, f"{shown(key)} is given twice: first at {first}", "keep one of them"))
        else:
            entries[key] = Entry(key_place, value)
    return Mapping(entries, place)


_HELP = {
    "mapping values are not allowed here": "check the indentation; a text that contains ': ' needs quotes",
    "could not find expected ':'": "every key needs a colon and a space after it",
    "expected <block end>": "keys of one mapping must start in the same column",
    "expected ',' or '}'": "close the { with a }, and separate its entries with commas",
    "expected ',' or ']'": "close the [ with a ], and separate its entries with commas",
}


def _malformed(source: Source, error: yaml.MarkedYAMLError) -> InputError:
    mark = error.problem_mark or error.context_mark
    place = _place(source.file, mark)
    if mark and source.text[mark.index : mark.index + 1] == "\t":
        return InputError(Problem("a tab where YAML wants spaces", place, "indent with spaces"))
    problem = error.problem or error.context or "malformed"
    if "another document" in problem:
        return InputError(Problem("a second document starts here", place, "one spec per file: remove the --- line"))
    help = next((help for start, help in _HELP.items() if problem.startswith(start)), None)
    return InputError(Problem(f"not valid YAML: {shown(problem, quote='', longest=200)}", place, help))
