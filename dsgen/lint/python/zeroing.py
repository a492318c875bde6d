"""Whether gradients are cleared where they should add up."""

import ast

from dsgen.lint.python.gradients import zeroings
from dsgen.lint.python.models import receiver
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import Window


def zeroed_every_time(file: PythonFile, window: Window) -> ast.Call | None:
    """A ``zero_grad()`` that every pass of an accumulating loop makes."""
    if window.gate is None:
        return None
    for call in zeroings(file):
        loops = file.tree.loops(call)
        if (
            loops
            and loops[0] is window.loop
            and not file.tree.guards(call, window.loop)
            and _concerns(file, call, window)
        ):
            return call
    return None


def _concerns(file: PythonFile, call: ast.Call, window: Window) -> bool:
    """Whether it clears what this window's update uses: the optimizer itself, or a model."""
    owner = receiver(call)
    if owner is None:
        return False
    mine = origins(file, owner)
    if mine & origins(file, window.update.target):
        return True
    return isinstance(owner, ast.Name) and owner.id in ("model", "net", "optimizer", "engine")
