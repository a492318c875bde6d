"""Conditions that hold once every k passes of a loop: ``(i + 1) % k == 0`` and its many spellings.

Every spelling is brought to one form: with n = 0, 1, 2, ... counting the passes, the condition holds where
n = first (mod k). Right for gradient accumulation is first = k - 1 (-1 mod k): the step comes after k micro-batches.
"""

import ast
from dataclasses import dataclass, replace

from dsgen.lint.python.bindings import ITEM, Binding, Place, bindings
from dsgen.lint.python.origins import Origin, constant, origins, same
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import LOOPS, Guard, Loop

_MOST = 40


@dataclass(frozen=True, slots=True)
class Period:
    """Holds for the passes n = first (mod size) of a loop; ``negated``: for all others."""

    test: ast.expr
    """The comparison, as it stands."""
    loop: Loop
    size: ast.expr
    first: int
    negated: bool = False
    flushes: bool = False
    """Something else makes it hold, too (``or i + 1 == len(loader)``)."""
    skips_zero: bool = False
    """``and step > 0`` keeps the first hit from counting."""
    restarts: bool = True
    """The counter begins anew with the loop; False: it runs on from epoch to epoch."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number that grows by one with each pass: ``start`` in pass 0, as seen at one place."""

    loop: Loop
    start: int
    restarts: bool
    key: object


def period_of(file: PythonFile, guards: list[Guard], at: ast.AST) -> Period | None:
    """The one period in conditions that must all hold; None where there is none, or more than one."""
    found = [period for test, holds in guards if (period := parse(file, test, at, holds)) is not None]
    if len(found) != 1:
        return None
    (period,) = found
    if any(_excludes_zero(file, test, holds, period, at) for test, holds in guards):
        period = replace(period, skips_zero=True)
    return period


def parse(file: PythonFile, test: ast.expr, at: ast.AST, holds: bool = True, depth: int = 0) -> Period | None:
    """The period of a condition, seen from a place; None where it is none that can be told."""
    if depth > _MOST:
        return None
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner) if not isinstance(inner, ast.BinOp):
            return parse(file, inner, at, not holds, depth + 1)
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod()) as rest):
            return _remainder(file, test, rest, ast.Constant(0), holds, at)
        case ast.BinOp(op=ast.Mod()):
            return _remainder(file, test, test, ast.Constant(0), not holds, at)
        case ast.BoolOp(op=op, values=values):
            return _combined(file, isinstance(op, ast.Or) == holds, values, at, holds, depth)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            holds = holds == isinstance(op, ast.Eq)
            if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
                return _remainder(file, test, left, right, holds, at)
            if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mod):
                return _remainder(file, test, right, left, holds, at)
            return None
        case ast.Name() | ast.Attribute():
            return _named(file, test, holds, depth)
        case ast.Call():
            return _predicate(file, test, holds, depth)
    return None


def _combined(
    file: PythonFile, alternatives: bool, values: list[ast.expr], at: ast.AST, holds: bool, depth: int
) -> Period | None:
    """``a or b`` flushes beside its period; ``a and b`` only narrows it."""
    found = [period for value in values if (period := parse(file, value, at, holds, depth + 1)) is not None]
    if len(found) != 1:
        return None
    if alternatives:
        return replace(found[0], flushes=True)
    zero = any(_excludes_zero(file, value, holds, found[0], at) for value in values)
    return replace(found[0], skips_zero=found[0].skips_zero or zero)


def _named(file: PythonFile, test: ast.expr, holds: bool, depth: int) -> Period | None:
    """A flag that a statement of the same loop sets: ``last = (i + 1) % k == 0``."""
    place = bindings(file).place(test)
    bound = bindings(file).of.get(place, []) if place else []
    made = [b.value for b in bound if b.kind == "assign" and isinstance(b.value, ast.expr) and not b.steps]
    made = [value for value in made if not isinstance(value, ast.Constant)]
    if len(made) == 1 and len([b for b in bound if b.kind != "assign"]) == 0:
        return parse(file, made[0], made[0], holds, depth + 1)
    if len(bound) == 1 and bound[0].kind == "parameter":
        given = [o.node for o in origins(file, test) if isinstance(o.node, ast.expr) and not o.steps]
        if len(given) == 1 and not isinstance(given[0], ast.Name | ast.Attribute):
            return parse(file, given[0], given[0], holds, depth + 1)
    return None


def _predicate(file: PythonFile, call: ast.Call, holds: bool, depth: int) -> Period | None:
    """A function of the file that returns the condition."""
    made = [o.node for o in origins(file, call) if not o.steps]
    if len(made) == 1 and made[0] is not call and isinstance(made[0], ast.expr):
        found = parse(file, made[0], made[0], holds, depth + 1)
        return replace(found, test=call) if found else None
    return None


def _remainder(
    file: PythonFile, test: ast.expr, rest: ast.BinOp, value: ast.expr, holds: bool, at: ast.AST
) -> Period | None:
    """``(i + a) % k == r`` with i = start + n holds where n = r - a - start (mod k)."""
    wanted = _modulo(file, value, rest.right)
    count = count_of(file, rest.left, at)
    if wanted is None or count is None or isinstance(rest.left, ast.Constant):
        return None
    return Period(test, count.loop, rest.right, wanted - count.start, not holds, restarts=count.restarts)


def _modulo(file: PythonFile, value: ast.expr, size: ast.expr) -> int | None:
    """A remainder as a number mod k: ``k - 1`` is -1."""
    number = constant(file, value)
    if isinstance(number, int):
        return number
    for origin in origins(file, value):
        match origin:
            case Origin(ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int() as less)), ()):
                return -less if same(file, left, size) else None
    match value:
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int() as less)):
            return -less if same(file, left, size) else None
    return None


def count_of(file: PythonFile, expression: ast.expr, at: ast.AST, depth: int = 0) -> Count | None:
    """What an expression counts, seen from a place."""
    if depth > _MOST:
        return None
    match expression:
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int() as more)):
            return _shifted(count_of(file, left, at, depth + 1), more)
        case ast.BinOp(left=ast.Constant(value=int() as more), op=ast.Add(), right=right):
            return _shifted(count_of(file, right, at, depth + 1), more)
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int() as less)):
            return _shifted(count_of(file, left, at, depth + 1), -less)
        case ast.Name() | ast.Attribute():
            return _of_variable(file, expression, at, depth)
    return None


def _shifted(count: Count | None, by: int) -> Count | None:
    return replace(count, start=count.start + by) if count else None


def _of_variable(file: PythonFile, name: ast.expr, at: ast.AST, depth: int) -> Count | None:
    place = bindings(file).place(name)
    if place is None:
        return None
    bound = bindings(file).of.get(place, [])
    if any(_increment(binding, place, file) for binding in bound):
        return _counter(file, place, bound, at)
    made = set(origins(file, name))
    if len(made) != 1:
        return None
    (origin,) = made
    if isinstance(origin.node, ast.BinOp) and not origin.steps and depth < _MOST:
        return count_of(file, origin.node, origin.node, depth + 1)
    return _index(file, origin)


def _index(file: PythonFile, origin: Origin) -> Count | None:
    """The index of ``for i, x in enumerate(...)`` or ``for i in range(...)``."""
    loop = file.tree.parent.get(origin.node)
    while loop is not None and not isinstance(loop, LOOPS):
        loop = file.tree.parent.get(loop) if isinstance(loop, ast.Call) else None
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return None
    match origin:
        case Origin(ast.Call(func=ast.Name(id="enumerate")) as call, (step, 0)) if step == ITEM:
            start = next((k.value for k in call.keywords if k.arg == "start"), call.args[1] if call.args[1:] else None)
        case Origin(ast.Call(func=ast.Name(id="range"), args=[_]), (step,)) if step == ITEM:
            start = None
        case Origin(ast.Call(func=ast.Name(id="range"), args=[first, _]), (step,)) if step == ITEM:
            start = first
        case _:
            return None
    begins = 0 if start is None else constant(file, start)
    return Count(loop, begins, True, loop) if isinstance(begins, int) else None


def _increment(binding: Binding, place: Place, file: PythonFile) -> bool:
    """``n += 1`` or ``n = n + 1``."""
    match binding:
        case Binding("augment", ast.AugAssign(op=ast.Add()), ast.Constant(value=1)):
            return True
        case Binding("assign", _, ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=1)), ()):
            return bindings(file).place(left) == place
    return False


def _counter(file: PythonFile, place: Place, bound: list[Binding], at: ast.AST) -> Count | None:
    """A counter: starts at a number, and one statement of the loop adds one in every pass."""
    grows = [binding for binding in bound if _increment(binding, place, file)]
    starts = [binding for binding in bound if binding not in grows]
    loops = file.tree.loops(grows[0].node)
    if len(grows) != 1 or not loops or file.tree.guards(grows[0].node, loops[0]):
        return None
    numbers = {s.value.value for s in starts if isinstance(s.value, ast.Constant) and s.kind == "assign"}
    if len(numbers) != 1 or len(starts) != len([s for s in starts if isinstance(s.value, ast.Constant)]):
        return None
    (number,) = numbers
    loop = loops[0]
    if not isinstance(number, int) or any(file.tree.within(s.node, loop) for s in starts):
        return None
    if not file.tree.within(at, loop):
        return None
    before = (grows[0].node.lineno, 0) < (getattr(at, "lineno", 0), 0)  # type: ignore[attr-defined]
    outer = [o for o in file.tree.loops(loop) if any(file.tree.within(s.node, o) for s in starts)]
    restarts = bool(outer) or not file.tree.loops(loop)
    return Count(loop, number + before, restarts, place)


def _excludes_zero(file: PythonFile, test: ast.expr, holds: bool, period: Period, at: ast.AST) -> bool:
    """``step > 0``, ``step != 0``, ``step``: the same counter, kept from its start."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and holds else [test]
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]) if holds:
                counted: ast.expr = left
            case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=1)]) if holds:
                counted = left
            case ast.Name() | ast.Attribute() if holds:
                counted = part
            case _:
                continue
        count = count_of(file, counted, at)
        if count is not None and count.loop is period.loop and count.start == 0:
            return True
    return False
