import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import optimizer_steps
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC214", kinds=("python",), source="torch.optim: step() skips parameters without gradients")
def gradients_cleared_before_the_step(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``backward()``, ``zero_grad()``, ``step()``, in this order: the update finds no gradients.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        model(batch).mean().backward()
        optimizer.zero_grad()
        optimizer.step()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    ```
    """
    for update in optimizer_steps(file):
        step = file.tree.statement(update.call)
        block = getattr(file.tree.parent.get(step), "body", None)
        if not isinstance(block, list) or step not in block:
            continue
        before = block[: block.index(step)]
        cleared = [s for s in before if _clears(file, s, update.target)]
        passes = [s for s in before if _holds(s, "backward")]
        if cleared and passes and before.index(passes[-1]) < before.index(cleared[-1]):
            yield error(
                update.call,
                "gradients were cleared after the backward pass: this step finds none, so nothing is trained",
                help="clear them before the backward pass, or after the step",
                related=((cleared[-1], "cleared here"),),
            )


def _clears(file: PythonFile, statement: ast.stmt, optimizer: ast.expr) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_grad")) as call):
            owner = receiver(call)
            return owner is not None and bool(origins(file, owner) & origins(file, optimizer))
    return False


def _holds(statement: ast.stmt, method: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == method for node in ast.walk(statement))
