"""Code that only one process runs."""

import ast

from dsgen.lint.python.names import called
from dsgen.lint.python.origins import library_value, origins
from dsgen.lint.python.read import PythonFile

_RANKS = ("torch.distributed.get_rank", "torch.distributed.get_node_local_rank", "deepspeed.comm.get_rank")
_VARIABLES = ("RANK", "LOCAL_RANK")
_NAMES = ("rank", "global_rank", "local_rank")


def on_one_rank(file: PythonFile, node: ast.AST) -> bool:
    """Whether a node stands under ``if rank == 0``, where the rank plainly is one."""
    for test, holds in file.tree.guards(node):
        match test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]) if holds:
                if _is_rank(file, left):
                    return True
            case ast.UnaryOp(op=ast.Not(), operand=operand) if holds and _is_rank(file, operand):
                return True
            case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Constant(value=0)]) if not holds:
                if _is_rank(file, left):
                    return True
    return False


def _is_rank(file: PythonFile, expression: ast.expr) -> bool:
    for origin in origins(file, expression):
        if (called(file, origin.node) or library_value(file, origin)) in _RANKS:
            return True
        for node in ast.walk(origin.node) if isinstance(origin.node, ast.expr) else ():
            if isinstance(node, ast.Constant) and node.value in _VARIABLES:
                return True
    # Of an engine or of arguments as well: engine.global_rank, args.local_rank.
    name = expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", None)
    return name in _NAMES
