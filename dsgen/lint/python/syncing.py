"""When gradients are exchanged between processes: ``no_sync`` and its relatives."""

import ast

from dsgen.lint.python.models import receiver
from dsgen.lint.python.read import PythonFile

# Whoever names one of these takes care of it; whether rightly is for other rules.
_CONTROLS = frozenset(
    {
        "no_sync",
        "require_backward_grad_sync",
        "set_requires_gradient_sync",
        "set_requires_all_reduce",
        "no_backward_sync",
        "accumulate",
        "register_comm_hook",
        "delay_all_reduce_named_params",
    }
)


def controls_sync(file: PythonFile) -> bool:
    """Whether the file decides anywhere when gradients are exchanged."""
    return file.once(_controls_sync)


def _controls_sync(file: PythonFile) -> bool:
    texts = (n.value for n in file.tree.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return bool(_CONTROLS & file.tree.words) or any(text in _CONTROLS for text in texts)


def no_syncs(file: PythonFile) -> list[tuple[ast.Call, ast.expr]]:
    """Every ``model.no_sync()`` with the model."""
    found = []
    for call in file.tree.methods_called("no_sync"):
        model = receiver(call)
        if model is not None and not call.args:
            found.append((call, model))
    return found
