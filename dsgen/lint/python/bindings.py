"""What every name of a file is bound to: assignments, loops, parameters, imports; by the scope that holds the name."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import FUNCTIONS, Block, Function, Tree

Step = int | str
"""From a value to a part of it: an index of what is unpacked, an attribute, ITEM of what is iterated."""

ITEM = "*"
SOME = "?"
"""An index that is not known (behind a star)."""

Kind = Literal["assign", "augment", "item", "with", "parameter", "definition", "element"]


@dataclass(frozen=True, slots=True)
class Place:
    """A variable, or an attribute of one: ``net``, ``self.net``, ``args.steps``. ``self`` belongs to its class."""

    scope: ast.AST
    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binding:
    """One thing that a place is bound to."""

    kind: Kind
    node: ast.AST
    """The statement, argument or definition that binds."""
    value: ast.AST | None
    steps: tuple[Step, ...] = ()
    """The part of the value."""


class Bindings:
    """Every binding of a file."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.of: dict[Place, list[Binding]] = {}
        self.imports: dict[tuple[ast.AST, str], list[str]] = {}
        """(scope, name) -> dotted names."""
        self.brought: set[str] = set()
        """Names that imports bind somewhere, and names that may stand for one of those."""
        self.stars: list[str] = []
        """Modules whose every name was imported."""
        self._names: dict[ast.AST, set[str]] = {}
        self._global: set[tuple[ast.AST, str]] = set()
        self._selves = dict(_selves(tree))
        for node in tree.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                self._global.update((tree.block(node), name) for name in node.names)
        for node in tree.nodes:
            self._note(node)

    def place(self, expression: ast.AST) -> Place | None:
        """The place that a name or a chain of attributes stands for."""
        path: list[str] = []
        while isinstance(expression, ast.Attribute):
            path.append(expression.attr)
            expression = expression.value
        if not isinstance(expression, ast.Name):
            return None
        scope = self.scope(expression, expression.id)
        owner = self._selves.get((scope, expression.id))
        return Place(owner or scope, "self" if owner else expression.id, tuple(reversed(path)))

    def scope(self, node: ast.AST, name: str) -> Block:
        """The block whose name it is, seen from a node; the module where nobody binds it."""
        block = self.tree.block(node)
        first = True
        while not isinstance(block, ast.Module):
            local = name in self._names.get(block, ()) and (block, name) not in self._global
            if local and (first or not isinstance(block, ast.ClassDef)):
                return block
            block, first = self.tree.block(block), False
        return block

    def bound(self, place: Place) -> list[Binding]:
        """What is bound to a place, through the bases of a class where they stand in the file."""
        found = self.of.get(place, [])
        if not found and isinstance(place.scope, ast.ClassDef):
            for base in self.bases(place.scope):
                found = self.of.get(Place(base, place.name, place.path), [])
                if found:
                    break
        return found

    def bases(self, owner: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """Base classes that the file itself defines, nearest first, each once."""
        seen = {owner}
        waiting = [owner]
        while waiting:
            for base in waiting.pop(0).bases:
                place = self.place(base)
                for binding in self.of.get(place, []) if place else []:
                    if isinstance(binding.node, ast.ClassDef) and binding.node not in seen:
                        seen.add(binding.node)
                        waiting.append(binding.node)
                        yield binding.node

    def owner(self, function: ast.AST) -> ast.ClassDef | None:
        """The class whose method a function is."""
        parent = self.tree.parent.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def method(self, owner: ast.ClassDef, name: str) -> Function | None:
        """A method of a class, its own or that of a base in the file."""
        for cls in (owner, *self.bases(owner)):
            for statement in cls.body:
                if isinstance(statement, FUNCTIONS) and statement.name == name:
                    return statement
        return None

    # One statement after the other.

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target, "assign", node, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._target(target, "assign", node, value)
            case ast.NamedExpr(target=target, value=value):
                self._target(target, "assign", node, value)
            case ast.AugAssign(target=target, value=value):
                self._target(target, "augment", node, value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._item(target, node, value)
            case ast.comprehension(target=target, iter=value):
                self._item(target, node, value)
            case ast.withitem(context_expr=value, optional_vars=target) if target is not None:
                self._target(target, "with", node, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bind(Place(self.tree.block(node), node.name), Binding("definition", node, node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for argument in _arguments(node.args):
                self._bind(Place(node, argument.arg), Binding("parameter", argument, None))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        block = self.tree.block(node)
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                full = alias.name if alias.asname else name
            elif node.level or alias.name == "*":
                if not node.level and node.module:
                    self.stars.append(node.module)
                continue
            else:
                name, full = alias.asname or alias.name, f"{node.module}.{alias.name}"
            self.imports.setdefault((block, name), []).append(full)
            self._names.setdefault(block, set()).add(name)
            self.brought.add(name)

    def _item(self, target: ast.expr, node: ast.AST, value: ast.expr) -> None:
        """The target of a loop, through ``enumerate``: its index is ITEM, 0 and its value ITEM of what it counts."""
        match value, target:
            case ast.Call(func=ast.Name(id="enumerate"), args=[counted, *_]), ast.Tuple(elts=[index, item]):
                self._target(index, "item", node, value, (ITEM, 0))
                self._item(item, node, counted)
            case ast.Call(func=function, args=[inner, *_]), _ if _last_name(function) in _SAME_ITEMS:
                self._item(target, node, inner)
            case _:
                self._target(target, "item", node, value, (ITEM,))

    def _target(
        self, target: ast.expr, kind: Kind, node: ast.AST, value: ast.expr | None, steps: tuple[Step, ...] = ()
    ) -> None:
        match target:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, kind, node, value, steps)
            case ast.Starred(value=inner):
                self._target(inner, kind, node, value, steps)
            case ast.Name(id=name):
                scope = self.tree.block(target)
                if (scope, name) in self._global:
                    scope = self.tree.module
                self._bind(Place(scope, name), Binding(kind, node, value, steps))
                if kind == "assign" and isinstance(value, ast.Attribute):
                    self.brought.add(name)
            case ast.Attribute():
                place = self.place(target)
                if place is not None:
                    self._bind(place, Binding(kind, node, value, steps))
            case ast.Subscript(value=base):
                place = self.place(base)
                if place is not None:
                    self.of.setdefault(place, []).append(Binding("element", node, value, steps))

    def _unpack(
        self, targets: list[ast.expr], kind: Kind, node: ast.AST, value: ast.expr | None, steps: tuple[Step, ...]
    ) -> None:
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) and not steps
        starred = any(isinstance(target, ast.Starred) for target in targets)
        if same and not starred and isinstance(value, ast.Tuple | ast.List):
            for target, part in zip(targets, value.elts, strict=True):
                self._target(target, kind, node, part)
            return
        behind = False
        for index, target in enumerate(targets):
            behind = behind or isinstance(target, ast.Starred)
            self._target(target, kind, node, value, (*steps, SOME if behind else index))

    def _bind(self, place: Place, binding: Binding) -> None:
        self.of.setdefault(place, []).append(binding)
        if not place.path:
            self._names.setdefault(place.scope, set()).add(place.name)


# What yields the items of its first argument.
_SAME_ITEMS = {"reversed", "list", "tuple", "sorted", "tqdm", "trange", "track"}


def _last_name(function: ast.expr) -> str | None:
    return getattr(function, "attr", None) or getattr(function, "id", None)


def _selves(tree: Tree) -> Iterator[tuple[tuple[ast.AST, str], ast.ClassDef]]:
    """(method, the name of its first parameter) -> class."""
    for node in tree.nodes:
        owner = tree.parent.get(node)
        if isinstance(node, FUNCTIONS) and isinstance(owner, ast.ClassDef):
            first = [*node.args.posonlyargs, *node.args.args][:1]
            static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
            if first and not static:
                yield (node, first[0].arg), owner


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


def bindings(file: PythonFile) -> Bindings:
    """The bindings of a file."""
    return file.once(_bindings)


def _bindings(file: PythonFile) -> Bindings:
    return Bindings(file.tree)
