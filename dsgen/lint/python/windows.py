"""Accumulation windows: the micro-batch loop, its backward pass, and the update that comes once every k passes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dsgen.lint.python.names import called, library_name
from dsgen.lint.python.origins import constant, origins, same, tracer
from dsgen.lint.python.periods import Period, period_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import Backward, Update, backwards, updates
from dsgen.lint.python.tree import Guard, Loop, position

Chain = tuple[ast.AST, ...]
"""A node, the call in the file that leads to its function, the call that leads there: from the inside out."""

# Followed callers: `train_step` called by `train_epoch` called by `main`.
_DEPTH = 2
_CALLERS = 4


@dataclass(frozen=True, slots=True)
class Window:
    """k backward passes, then one update."""

    loop: Loop
    """The loop over micro-batches."""
    backward: Backward
    update: Update
    gate: Period | None
    """What lets the update through; None where it stands behind a loop over the micro-batches of one update."""
    size: ast.expr | None
    """k, as written; None where it cannot be seen."""
    chain: Chain
    """From the backward pass to the loop."""
    update_chain: Chain
    """From the update to the loop."""

    def anchors(self, file: PythonFile) -> tuple[ast.AST, ast.AST]:
        """What of the backward pass and of the update stands in one function, so that the text gives their order."""
        for one in self.chain:
            for other in self.update_chain:
                if one is not other and file.tree.function(one) is file.tree.function(other):
                    return one, other
        return self.chain[0], self.update_chain[0]

    def first_micro_batches(self, file: PythonFile) -> int | None:
        """Micro-batches before the first update; None where that is k, as it should be, or not known."""
        if self.gate is None:
            return None
        backward, update = self.anchors(file)
        seen = self.gate.first + (position(backward) < position(update))
        size = constant(file, self.gate.size)
        if isinstance(size, int) and size > 0:
            seen %= size
        return seen if seen > 0 else None


def chains(file: PythonFile, node: ast.AST) -> list[Chain]:
    """Every way from a node out of its function to callers in the file."""
    found: list[Chain] = []
    waiting: list[Chain] = [(node,)]
    while waiting:
        chain = waiting.pop()
        function = file.tree.function(chain[-1])
        sites = tracer(file).sites.get(function, [])[:_CALLERS] if function and len(chain) <= _DEPTH else []
        sites = [site for site in sites if site not in chain and file.tree.function(site) is not function]
        found.append(chain)
        waiting.extend((*chain, site) for site in sites)
    # The longest say most; those that stop half way are contained in them.
    return [chain for chain in found if not any(other[: len(chain)] == chain != other for other in found)]


def loops_of(file: PythonFile, chain: Chain) -> list[Loop]:
    """Loops around a chain, from the inside out."""
    return [loop for anchor in chain for loop in file.tree.loops(anchor)]


def guards_to(file: PythonFile, chain: Chain, loop: Loop | None) -> list[Guard]:
    """Conditions between a node and a loop around it."""
    found: list[Guard] = []
    for anchor in chain:
        inside = loop is not None and loop in file.tree.loops(anchor)
        found.extend(file.tree.guards(anchor, loop if inside else None))
        if inside:
            break
    return found


def windows(file: PythonFile) -> list[Window]:
    """Every accumulation window that can be told."""
    return file.once(_windows)


def _windows(file: PythonFile) -> list[Window]:
    found: dict[tuple[ast.AST, ast.AST, ast.AST], Window] = {}
    steps = [(u, chain) for u in updates(file) if u.what != "scheduler" for chain in chains(file, u.call)]
    for backward in backwards(file):
        for chain in chains(file, backward.call):
            for update, other in steps:
                if _belong(backward, update):
                    for window in _between(file, backward, chain, update, other):
                        found.setdefault((window.loop, backward.call, update.call), window)
    return [window for window in found.values() if not _has_own_rhythm(file, window, steps)]


def _has_own_rhythm(file: PythonFile, window: Window, steps: list[tuple[Update, Chain]]) -> bool:
    """Several optimizers, each at its own pace (a critic and a generator): then who adds up for whom is not known."""
    if window.gate is None:
        return False
    for update, chain in steps:
        if window.loop in loops_of(file, chain) and not file.tree.exclusive(update.call, window.update.call):
            gate = period_of(file, guards_to(file, chain, window.loop), chain[0])
            if not _same_gate(file, gate, window.gate):
                return True
    return any(
        other.call is not window.backward.call
        and window.loop in loops_of(file, chain)
        and period_of(file, guards_to(file, chain, window.loop), chain[0]) is not None
        and not file.tree.exclusive(other.call, window.backward.call)
        for other in backwards(file)
        for chain in chains(file, other.call)
    )


def _same_gate(file: PythonFile, one: Period | None, other: Period) -> bool:
    return one is not None and one.first == other.first and same(file, one.size, other.size)


def _belong(backward: Backward, update: Update) -> bool:
    match backward.driver:
        case "plain" | "scaler":
            return update.what in ("optimizer", "scaler")
        case "deepspeed":
            return update.what in ("deepspeed", "optimizer")
        case "accelerate" | "fabric":
            return update.what in ("accelerate", "optimizer")
    return False


def _between(file: PythonFile, backward: Backward, chain: Chain, update: Update, other: Chain) -> Iterator[Window]:
    inner, outer = loops_of(file, chain), loops_of(file, other)
    shared = next((loop for loop in inner if loop in outer), None)
    if shared is not None and shared is inner[0]:
        gate = period_of(file, guards_to(file, other, shared), other[0])
        alike = period_of(file, guards_to(file, chain, shared), chain[0])
        if gate is not None and gate.loop is shared and not gate.negated and alike is None:
            yield Window(shared, backward, update, gate, gate.size, chain, other)
        return
    # A loop of micro-batches, then the update behind it, in the same function.
    loop = inner[shared_at - 1] if (shared_at := _at(inner, shared)) else None
    if loop is None or _at(outer, shared) != 0:
        return
    same = file.tree.function(loop) is file.tree.function(other[-1] if len(other) == 1 else other[0])
    if same and file.tree.precedes(loop, update.call) and shared_at == 1 and _is_count(loop):
        yield Window(loop, backward, update, None, _counted(loop), chain, other)


def _at(loops: list[Loop], loop: Loop | None) -> int:
    return loops.index(loop) if loop in loops else len(loops)


def _is_count(loop: Loop) -> bool:
    """``for _ in range(k)``: a fixed number of passes, not all of a data set."""
    size = _counted(loop)
    return size is not None and not any(isinstance(n, ast.Name) and n.id == "len" for n in ast.walk(size))


def _counted(loop: Loop) -> ast.expr | None:
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[size])):
            return size
    return None


def is_one(file: PythonFile, size: ast.expr | None) -> bool:
    """Whether a window is known to hold one micro-batch: then nothing is accumulated."""
    return size is not None and constant(file, size) == 1


def has_an_end(file: PythonFile, window: Window) -> bool:
    """Whether a window's loop goes over a data set to its end: a ``DataLoader``, or anything that epochs go over again.

    Not so where it cycles, counts steps, or breaks off.
    """
    loop = window.loop
    if not isinstance(loop, ast.For):
        return False
    for node in ast.walk(loop.iter):
        name = str(getattr(node, "attr", None) or getattr(node, "id", None) or "").lower()
        if any(word in name for word in _ENDLESS):
            return False
        if isinstance(node, ast.Name | ast.Attribute) and (library_name(file, node) or "").startswith("itertools."):
            return False
    if any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop)):
        return False
    over = loop.iter.args[0] if isinstance(loop.iter, ast.Call) and loop.iter.args else loop.iter
    made = {called(file, origin.node) for origin in origins(file, over)}
    return "torch.utils.data.DataLoader" in made or len(loops_of(file, window.chain)) > 1


_ENDLESS = ("range", "cycle", "infinite", "endless", "islice", "repeat", "count", "zip")


def show(expression: ast.AST | None) -> str:
    """An expression for messages, short."""
    if expression is None:
        return "k"
    try:
        text = ast.unparse(expression)
    except RecursionError:
        return "k"
    return text if len(text) <= 40 else "k"
