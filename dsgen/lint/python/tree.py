"""A syntax tree with what ``ast`` leaves out: parents, order and what encloses a node. Nothing here recurses."""

import ast
from collections.abc import Collection, Iterator
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Block = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Guard = tuple[ast.expr, bool]
"""A condition, and whether it has to hold."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BLOCKS = (ast.Module, ast.ClassDef, *FUNCTIONS, ast.Lambda)


class Tree:
    """One module."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.parent: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        """Every node, in the order of the text."""
        self._block: dict[ast.AST, Block] = {module: module}
        waiting: list[ast.AST] = [module]
        while waiting:
            node = waiting.pop()
            self.nodes.append(node)
            own = self._block[node]
            inside = _inside(node)
            children = list(ast.iter_child_nodes(node))
            for child in children:
                self.parent[child] = node
                self._block[child] = node if child in inside and isinstance(node, _BLOCKS) else own
            waiting.extend(reversed(children))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    def methods_called(self, *names: str) -> list[ast.Call]:
        """Every call ``something.NAME(...)``."""
        return [call for name in names for call in self._by_attribute.get(name, ())]

    @cached_property
    def _by_attribute(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            if isinstance(call.func, ast.Attribute):
                found.setdefault(call.func.attr, []).append(call)
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name, attribute and keyword that stands in the code."""
        found: set[str] = set()
        for node in self.nodes:
            match node:
                case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)) | ast.arg(arg=word):
                    found.add(word)
        return frozenset(found)

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(ancestor, its child on the way) from the inside out."""
        while node in self.parent:
            yield self.parent[node], node
            node = self.parent[node]

    def block(self, node: ast.AST) -> Block:
        """The function, lambda, class or module whose names a node's expressions see first."""
        return self._block[node]

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        block = self._block[node]
        while not isinstance(block, FUNCTIONS):
            if isinstance(block, ast.Module):
                return None
            block = self._block[block]
        return block

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def loops(self, node: ast.AST) -> list[Loop]:
        """Loops around a node within its function, from the inside out; a loop's own head is not inside it."""
        found: list[Loop] = []
        for ancestor, child in self.above(node):
            if isinstance(ancestor, _BLOCKS):
                break
            if isinstance(ancestor, LOOPS) and child in ancestor.body:
                found.append(ancestor)
        return found

    def guards(self, node: ast.AST, within: ast.AST | None = None) -> list[Guard]:
        """Conditions under which a node is reached, up to ``within`` or its function's edge.

        Those of ``if``, of conditional expressions, and of an earlier ``if ...: continue`` or ``return`` beside it.
        """
        found: list[Guard] = []
        for ancestor, child in self.above(node):
            found.extend(_guards(ancestor, child))
            if ancestor is within or isinstance(ancestor, _BLOCKS):
                break
        return found

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Whether a node lies in another (or is it)."""
        return node is outer or any(ancestor is outer for ancestor, _ in self.above(node))

    def exclusive(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two nodes lie in different branches of one ``if``, so that never both run."""
        branches = {ancestor: _branch(ancestor, child) for ancestor, child in self.above(one)}
        for ancestor, child in self.above(other):
            if ancestor in branches:
                return _branch(ancestor, child) is not branches[ancestor]
        return False

    def precedes(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether one node runs before another: same block of names, earlier in the text, not an alternative to it."""
        same = self.block(one) is self.block(other)
        return same and position(one) < position(other) and not self.exclusive(one, other)


def position(node: ast.AST) -> tuple[int, int]:
    """Where a node starts."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _inside(node: ast.AST) -> Collection[ast.AST]:
    """Children that see a block's own names; decorators, defaults and base classes belong to the block around."""
    match node:
        case ast.Module(body=body) | ast.ClassDef(body=body):
            return set(body)
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            return {args, *body}
        case ast.Lambda(args=args, body=value):
            return {args, value}
    return ()


def _branch(node: ast.AST, child: ast.AST) -> object:
    """What tells the alternatives of a node apart; None where it has none."""
    match node:
        case ast.If() if child in node.body:
            return "body"
        case ast.If() if child in node.orelse:
            return "else"
        case ast.IfExp() if child is not node.test:
            return child
        case ast.Try() if child in node.handlers:
            return "handler"
    return None


def _guards(ancestor: ast.AST, child: ast.AST) -> Iterator[Guard]:
    match ancestor:
        case ast.If() if child is not ancestor.test:
            yield ancestor.test, child in ancestor.body
        case ast.IfExp() if child is not ancestor.test:
            yield ancestor.test, child is ancestor.body
    for statements in (getattr(ancestor, name, ()) for name in ("body", "orelse", "finalbody")):
        if isinstance(statements, list) and child in statements:
            for earlier in statements[: statements.index(child)]:
                match earlier:
                    case ast.If(test=test, body=[*_, ast.Continue() | ast.Return()], orelse=[]):
                        yield test, False
