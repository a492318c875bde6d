"""Where a value comes from: back through assignments, loops, parameters and returns of the same file.

An origin is the expression that makes the value (a call, mostly) and the steps from it to the part that is meant.
Two expressions that share an origin can be the same object. Where nothing is known the expression is its own origin.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsgen.lint.python.bindings import ITEM, Binding, Place, Step, bindings
from dsgen.lint.python.names import called, library_name
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import FUNCTIONS, Function

# Real files stay far below; beyond it a value counts as unknown.
MOST = 64
_WORK = 2000

# Methods that return the object itself, or something that stands for it.
_SAME = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "train",
        "eval",
        "half",
        "bfloat16",
        "float",
        "double",
        "requires_grad_",
        "to_empty",
        "compile",
        "share_memory",
        "contiguous",
    ]
)
_SAME_OBJECT = frozenset({"torch.compile", "typing.cast", "torch.jit.script"})


@dataclass(frozen=True, slots=True)
class Origin:
    """What makes a value, and the steps to the part."""

    node: ast.AST
    steps: tuple[Step, ...] = ()


Origins = frozenset[Origin]


class Tracer:
    """Traces values of one file."""

    def __init__(self, file: PythonFile) -> None:
        self.file = file
        self.bindings = bindings(file)
        self._known: dict[ast.AST, Origins] = {}
        self._sites: dict[ast.AST, list[ast.Call]] | None = None
        self._work = 0
        self._unbound: dict[Place | None, ast.AST] = {}

    def origins(self, expression: ast.AST) -> Origins:
        """Every origin of an expression."""
        if expression not in self._known:
            self._work = 0
            found = frozenset(self._trace(expression, frozenset()))
            small = len(found) <= MOST and self._work < _WORK
            self._known[expression] = found if small else frozenset({Origin(expression)})
        return self._known[expression]

    def _trace(self, node: ast.AST, seen: frozenset[ast.AST]) -> set[Origin]:
        self._work += 1
        if node in seen or self._work > _WORK or len(seen) > 60:
            return set()
        seen |= {node}
        match node:
            case ast.Name() | ast.Attribute():
                return self._variable(node, seen)
            case ast.IfExp(body=body, orelse=other):
                return self._trace(body, seen) | self._trace(other, seen)
            case ast.BoolOp(values=values):
                return set().union(*(self._trace(value, seen) for value in values))
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self._trace(value, seen)
            case ast.Call():
                return self._call(node, seen)
            case ast.Subscript(value=value, slice=index):
                key: Step = ITEM
                if isinstance(index, ast.Constant) and isinstance(index.value, int | str):
                    key = index.value
                return self._parts(self._trace(value, seen), (key,), seen)
        return {Origin(node)}

    def _variable(self, node: ast.Name | ast.Attribute, seen: frozenset[ast.AST]) -> set[Origin]:
        place = self.bindings.place(node)
        bound = [b for b in self.bindings.bound(place) if b.kind in _GIVES] if place else []
        found: set[Origin] = set()
        for binding in bound:
            found |= self._binding(binding, seen)
        if isinstance(node, ast.Attribute) and (not bound or (place and place.name != "self")):
            base = self._trace(node.value, seen)
            return found | self._parts(base, (node.attr,), seen)
        if bound:
            return found  # nothing on a cycle: model = wrap(model)
        # A name that nobody binds is the same thing wherever it stands.
        return {Origin(self._unbound.setdefault(place, node))}

    def _binding(self, binding: Binding, seen: frozenset[ast.AST]) -> set[Origin]:
        if binding.kind == "parameter":
            return self._parameter(binding.node, seen)
        if binding.kind == "definition" or binding.value is None:
            return {Origin(binding.node)}
        return self._parts(self._trace(binding.value, seen), binding.steps, seen)

    def _parts(self, whole: set[Origin], steps: tuple[Step, ...], seen: frozenset[ast.AST]) -> set[Origin]:
        """Takes steps into values; into a tuple that is written out, really."""
        for step in steps:
            found: set[Origin] = set()
            for origin in whole:
                match origin.node, step:
                    case ast.Tuple(elts=parts) | ast.List(elts=parts), int() if not origin.steps and step < len(parts):
                        found |= self._trace(parts[step], seen)
                    case ast.Dict(keys=keys, values=values), str() if not origin.steps and step != ITEM:
                        match [v for k, v in zip(keys, values, strict=True) if _is(k, step)]:
                            case [*_, value]:
                                found |= self._trace(value, seen)
                            case _:
                                found.add(Origin(origin.node, (step,)))
                    case _ if len(origin.steps) < 8:
                        found.add(Origin(origin.node, (*origin.steps, step)))
            whole = found
        return whole

    def _call(self, call: ast.Call, seen: frozenset[ast.AST]) -> set[Origin]:
        function = self.callee(call)
        if isinstance(function, FUNCTIONS):
            found: set[Origin] = set()
            for value in self.returned(function):
                found |= self._trace(value, seen)
            return found or {Origin(call)}
        if call.args and called(self.file, call) in _SAME_OBJECT:
            return self._trace(call.args[0], seen) or {Origin(call)}
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME:
            return self._trace(call.func.value, seen) or {Origin(call)}
        return {Origin(call)}

    def returned(self, function: Function) -> Iterator[ast.expr]:
        """What a function of the file returns; nothing for a generator."""
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value and self.file.tree.function(node) is function:
                yield node.value

    def _parameter(self, parameter: ast.AST, seen: frozenset[ast.AST]) -> set[Origin]:
        assert isinstance(parameter, ast.arg)
        function = self.file.tree.block(parameter)
        given = [] if isinstance(function, ast.Lambda) else list(self.given(parameter))
        found: set[Origin] = set()
        for value in given:
            found |= self._trace(value, seen)
        return found or {Origin(parameter)}

    def given(self, parameter: ast.arg) -> Iterator[ast.expr]:
        """What the calls in the file pass for a parameter, with its default where one of them passes nothing."""
        function = self._function_of(parameter)
        if function is None:
            return
        for call in self.sites.get(function, ())[:8]:
            value = self._passed(function, call, parameter)
            if value is not None:
                yield value

    def _function_of(self, parameter: ast.arg) -> Function | None:
        for ancestor, _ in self.file.tree.above(parameter):
            if isinstance(ancestor, FUNCTIONS):
                return ancestor
            if isinstance(ancestor, ast.Lambda):
                return None
        return None

    def _passed(self, function: Function, call: ast.Call, parameter: ast.arg) -> ast.expr | None:
        for keyword in call.keywords:
            if keyword.arg == parameter.arg:
                return keyword.value
        positional = [*function.args.posonlyargs, *function.args.args]
        owner = self.bindings.owner(function)
        skipped = 1 if owner is not None and not _called_on_class(call, owner) else 0
        if parameter in positional:
            index = positional.index(parameter) - skipped
            if 0 <= index < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
                return call.args[index]
        return self.default(function, parameter)

    def default(self, function: Function, parameter: ast.arg) -> ast.expr | None:
        """The default of a parameter."""
        positional = [*function.args.posonlyargs, *function.args.args]
        defaults = function.args.defaults
        if parameter in positional:
            index = positional.index(parameter) - (len(positional) - len(defaults))
            return defaults[index] if index >= 0 else None
        if parameter in function.args.kwonlyargs:
            return function.args.kw_defaults[function.args.kwonlyargs.index(parameter)]
        return None

    # Who calls whom.

    def callee(self, call: ast.Call) -> Function | ast.ClassDef | None:
        """The function or class of the file that is called; None for anything else."""
        target = call.func
        if isinstance(target, ast.Name):
            place = self.bindings.place(target)
            return self._definition(place) if place else None
        if isinstance(target, ast.Attribute):
            owner = self._class_of(target.value)
            return self.bindings.method(owner, target.attr) if owner else None
        return None

    def _definition(self, place: Place) -> Function | ast.ClassDef | None:
        match self.bindings.of.get(place, []):
            case [
                Binding(kind="definition", node=(ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()) as node)
            ]:
                return node
        return None

    def _class_of(self, expression: ast.expr) -> ast.ClassDef | None:
        """The class of an object that was plainly made: ``self``, or a name bound to one call of the class."""
        place = self.bindings.place(expression)
        if place is None:
            return None
        if place.name == "self" and isinstance(place.scope, ast.ClassDef) and not place.path:
            return place.scope
        for binding in self.bindings.of.get(place, []):
            made = binding.value
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and not binding.steps:
                inner = self.bindings.place(made.func)
                found = self._definition(inner) if inner else None
                if isinstance(found, ast.ClassDef):
                    return found
        return None

    @property
    def sites(self) -> dict[ast.AST, list[ast.Call]]:
        """Calls of every function of the file; a class is its ``__init__``."""
        if self._sites is None:
            self._sites = {}
            for call in self.file.tree.calls:
                target: ast.AST | None = self.callee(call)
                if isinstance(target, ast.ClassDef):
                    target = self.bindings.method(target, "__init__")
                if target is not None:
                    self._sites.setdefault(target, []).append(call)
        return self._sites


_GIVES = frozenset({"assign", "item", "with", "parameter", "definition"})


def _is(key: ast.expr | None, value: str) -> bool:
    return isinstance(key, ast.Constant) and key.value == value


def _called_on_class(call: ast.Call, owner: ast.ClassDef) -> bool:
    """``Class.method(obj, ...)``; a call of the class itself passes no self either."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return name == owner.name
    return False


def tracer(file: PythonFile) -> Tracer:
    """The tracer of a file."""
    return file.once(Tracer)


def origins(file: PythonFile, expression: ast.AST) -> Origins:
    """Every origin of an expression."""
    return tracer(file).origins(expression)


def same(file: PythonFile, one: ast.AST, other: ast.AST) -> bool:
    """Whether two expressions can be the same value: equal constants, or a common origin."""
    mine, theirs = constant(file, one), constant(file, other)
    if mine is not None and theirs is not None:
        return mine == theirs
    return bool(_keys(origins(file, one)) & _keys(origins(file, other)))


def _keys(found: Iterable[Origin]) -> set[object]:
    """Origins as what compares: two equal literals are the same."""
    keys: set[object] = set()
    for origin in found:
        match origin.node:
            case ast.Constant(value=value):
                keys.add((repr(value), origin.steps))
            case _:
                keys.add(origin)
    return keys


def library_value(file: PythonFile, origin: Origin) -> str | None:
    """The dotted name of a value that a library provides: ``torch.float16``, ``ShardingStrategy.FULL_SHARD``."""
    name = library_name(file, origin.node)
    return ".".join([name, *map(str, origin.steps)]) if name else None


def constant(file: PythonFile, expression: ast.AST) -> int | float | None:
    """The number that an expression always is."""
    values = set()
    for origin in origins(file, expression):
        match origin:
            case Origin(ast.Constant(value=int() | float() as value), ()) if not isinstance(value, bool):
                values.add(value)
            case _:
                return None
    return values.pop() if len(values) == 1 else None
