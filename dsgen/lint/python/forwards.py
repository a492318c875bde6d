"""Which models a window's loss goes through."""

import ast

from dsgen.lint.python.models import Wrapper, wrapper_of, wraps
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import LOOPS
from dsgen.lint.python.windows import Chain, Window


def models_in(file: PythonFile, window: Window) -> list[tuple[ast.expr, Wrapper]]:
    """Wrapped models that are called in the loop (or in the functions that it leads to), with their wrapper."""
    if not wraps(file):
        return []
    found: list[tuple[ast.expr, Wrapper]] = []
    for scope in _scopes(file, window.chain):
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                wrapper = wrapper_of(file, node.func)
                if wrapper is not None:
                    found.append((node.func, wrapper))
    return found


def _scopes(file: PythonFile, chain: Chain) -> list[ast.AST]:
    """The loop around the last link, and the functions on the way to it."""
    scopes: list[ast.AST] = []
    for anchor in chain:
        loops = [loop for loop in file.tree.loops(anchor) if isinstance(loop, LOOPS)]
        function = file.tree.function(anchor)
        scopes.extend(loops[:1] or ([function] if function is not None else []))
    return scopes
