"""What happens to gradients between the backward pass and the update: zeroing, clipping, scaling by hand."""

import ast

from dsgen.lint.python.models import receiver
from dsgen.lint.python.names import called
from dsgen.lint.python.read import PythonFile

_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grads_with_norm_")


def zeroings(file: PythonFile) -> list[ast.Call]:
    """Every ``zero_grad()``."""
    return file.tree.methods_called("zero_grad")


def writes_gradients(file: PythonFile) -> bool:
    """Whether gradients are set, divided or multiplied by hand somewhere: ``p.grad = None``, ``p.grad /= n``."""
    return file.once(_writes_gradients)


def _writes_gradients(file: PythonFile) -> bool:
    for node in file.tree.nodes:
        match node:
            case ast.Assign(targets=targets) if any(_is_grad(target) for target in targets):
                return True
            case ast.AugAssign(target=target) if _is_grad(target):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr="div_" | "mul_" | "zero_" | "copy_")) if _is_grad(inner):
                return True
    return "foreach_div_" in " ".join(word for word in file.tree.words if "foreach" in word)


def _is_grad(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in ("grad", "main_grad"):
            return True
        node = node.value
    return False


def torch_clips(file: PythonFile) -> list[ast.Call]:
    """Every clip of the norm by torch's own function."""
    return [call for call in file.tree.calls if called(file, call) in _CLIPS]


def clipped(call: ast.Call) -> ast.expr | None:
    """The parameters that a clip is given; of a method the model."""
    return call.args[0] if call.args else receiver(call)
