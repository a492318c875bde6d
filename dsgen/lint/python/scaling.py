"""What a loss is divided by on its way to the backward pass."""

import ast
from dataclasses import dataclass, field

from dsgen.lint.python.bindings import Binding, bindings
from dsgen.lint.python.names import called
from dsgen.lint.python.origins import Origin, constant, origins, tracer
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import FUNCTIONS

_MOST = 300

# Methods that keep the value, or change it in no way that matters here.
_KEEP = frozenset(
    {"float", "mean", "to", "cuda", "cpu", "detach", "clone", "squeeze", "item", "half", "bfloat16", "contiguous"}
)


@dataclass(slots=True)
class Scaling:
    """Divisors that were seen, and whether something may divide that cannot be seen."""

    divisors: list[ast.expr] = field(default_factory=list)
    hidden: bool = False
    calls: list[ast.Call] = field(default_factory=list)
    """Calls that make the loss."""


def scaling_of(file: PythonFile, loss: ast.expr, size: ast.expr | None = None) -> Scaling:
    """Follows a loss back to what makes it. ``size`` is k: whoever is given it may divide by it."""
    found = Scaling()
    walk = _Walk(file, size, found)
    walk.run(loss)
    return found


class _Walk:
    def __init__(self, file: PythonFile, size: ast.expr | None, found: Scaling) -> None:
        self.file = file
        self.found = found
        self.roots = _roots(file, size) if size is not None else set()
        self.seen: set[ast.AST] = set()

    def run(self, loss: ast.expr) -> None:
        waiting: list[ast.AST] = [loss]
        while waiting:
            node = waiting.pop()
            if node in self.seen:
                continue
            self.seen.add(node)
            if len(self.seen) > _MOST:
                self.found.hidden = True
                return
            waiting.extend(self.step(node))

    def step(self, node: ast.AST) -> list[ast.AST]:
        match node:
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv(), right=right):
                self.found.divisors.append(right)
                return [left]
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.product(left, right)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return [left, right]
            case ast.Subscript(value=value) | ast.Attribute(value=value, attr="loss") | ast.Starred(value=value):
                return [value]
            case ast.IfExp(body=body, orelse=other):
                return [body, other]
            case ast.UnaryOp(operand=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return [inner]
            case ast.Tuple(elts=parts):
                return list(parts)
            case ast.Name() | ast.Attribute():
                return self.variable(node)
            case ast.Call():
                return self.call(node)
            case ast.Constant() | ast.arg():
                return []
        self.found.hidden = True
        return []

    def product(self, left: ast.expr, right: ast.expr) -> list[ast.AST]:
        """``loss * (1 / k)``, ``loss * scale``: a factor that is a quotient divides; a number only weighs."""
        following: list[ast.AST] = []
        for side in (left, right):
            values = [origin.node for origin in origins(self.file, side) if not origin.steps]
            quotients = [v for v in values if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Div)]
            inverse = [q for q in quotients if constant(self.file, q.left) is not None]
            if inverse:
                self.found.divisors.extend(quotient.right for quotient in inverse)
            elif constant(self.file, side) is None:
                following.append(side)
        return following

    def variable(self, node: ast.Name | ast.Attribute) -> list[ast.AST]:
        known = bindings(self.file)
        place = known.place(node)
        bound = known.bound(place) if place is not None else []
        following: list[ast.AST] = []
        for binding in bound:
            following.extend(self.binding(binding))
        if not bound:
            # Attributes of what a model returned (outputs.loss) lead back to the call.
            return [node.value] if isinstance(node, ast.Attribute) else self.unknown()
        return following

    def unknown(self) -> list[ast.AST]:
        self.found.hidden = True
        return []

    def binding(self, binding: Binding) -> list[ast.AST]:
        match binding:
            case Binding("augment", ast.AugAssign(op=ast.Div() | ast.FloorDiv(), value=divisor)):
                self.found.divisors.append(divisor)
                return []
            case Binding("augment", ast.AugAssign(target=target, op=ast.Mult(), value=factor)):
                return [node for node in self.product(target, factor) if node is not target]
            case Binding("augment", ast.AugAssign(op=ast.Add() | ast.Sub(), value=more)):
                return [more]
            case Binding("assign", _, ast.expr() as value, steps):
                return self.part(value, steps)
            case Binding("parameter", ast.arg() as parameter):
                given = list(tracer(self.file).given(parameter))
                return [*given] if given else self.unknown()
        return self.unknown()

    def part(self, value: ast.AST, steps: tuple[object, ...]) -> list[ast.AST]:
        """One element of what a function of the file returns; of other calls the call."""
        match value, steps:
            case ast.Call() as call, (int() as index, *_):
                callee = tracer(self.file).callee(call)
                if isinstance(callee, FUNCTIONS):
                    returned = list(tracer(self.file).returned(callee))
                    parts = [r.elts[index] for r in returned if isinstance(r, ast.Tuple) and index < len(r.elts)]
                    return [*parts] if len(parts) == len(returned) else self.unknown()
        return [value]

    def call(self, call: ast.Call) -> list[ast.AST]:
        name = called(self.file, call) or ""
        match call.func:
            case ast.Attribute(value=inner, attr="div" | "div_" | "true_divide") if call.args:
                self.found.divisors.append(call.args[0])
                return [inner]
            case ast.Attribute(value=inner, attr="mul" | "mul_" | "multiply") if call.args:
                return self.product(inner, call.args[0])
            case ast.Attribute(value=inner, attr="sum") if not name:
                return self.unknown()
            case ast.Attribute(value=inner, attr=attr) if attr in _KEEP and not name:
                return [inner]
        if name in ("torch.div", "torch.true_divide") and len(call.args) == 2:
            self.found.divisors.append(call.args[1])
            return [call.args[0]]
        if name == "torch.mul" and len(call.args) == 2:
            return self.product(*call.args)
        if isinstance(call.func, ast.Name) and call.func.id == "sum":
            return self.unknown()
        if name in ("torch.mean", "torch.squeeze", "torch.stack", "torch.cat") and call.args:
            return [call.args[0]]
        callee = tracer(self.file).callee(call)
        if isinstance(callee, FUNCTIONS):
            return list(tracer(self.file).returned(callee)) or self.unknown()
        self.found.calls.append(call)
        if self.may_divide(call, name):
            self.found.hidden = True
        return []

    def may_divide(self, call: ast.Call, name: str) -> bool:
        """Sums, methods of objects that hold k, functions that are given k, and totals of tokens."""
        if name == "torch.sum" or _sums(self.file, call):
            return True
        if isinstance(call.func, ast.Attribute) and _root(call.func) in ("self", *self.roots):
            # self.model(x) is a module's call; self.compute_loss(x) can be anything.
            return call.func.attr not in _MODULES or not isinstance(call.func.value, ast.Name)
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        words = {n.id for a in given for n in ast.walk(a) if isinstance(n, ast.Name)}
        plain = any("num_items" in (keyword.arg or "") for keyword in call.keywords)
        return plain or bool(words & self.roots)


# Attributes that hold modules, in nearly every trainer class.
_MODULES = frozenset(
    {"model", "net", "network", "ddp_model", "engine", "module", "policy"}
    | {"criterion", "loss_fn", "loss_func", "loss_function", "ce", "loss"}
)


def _sums(file: PythonFile, call: ast.Call) -> bool:
    """``reduction="sum"``, of the call or of the loss module that is called."""
    made = [call, *(origin.node for origin in origins(file, call.func) if not origin.steps)]
    return any(
        keyword.arg == "reduction" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value == "mean")
        for node in made
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    )


def _root(expression: ast.expr) -> str | None:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _roots(file: PythonFile, size: ast.expr) -> set[str]:
    """Names through which k can be reached: ``K``; ``args`` for ``args.k``."""
    found = {node.id for node in ast.walk(size) if isinstance(node, ast.Name)}
    for origin in origins(file, size):
        match origin:
            case Origin(ast.Name(id=name)):
                found.add(name)
    return found - {"self"}
