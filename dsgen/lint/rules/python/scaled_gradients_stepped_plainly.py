import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.names import calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards, is_always_on, is_optimizer_call, optimizer_steps
from dsgen.lint.python.tree import position
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC404", kinds=("python",), source="torch/amp/grad_scaler.py:step")
def scaled_gradients_stepped_plainly(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The loss is scaled, but the optimizer steps by itself: its gradients are 65536 times too large.

    ```python bad
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(batch).mean()).backward()
    optimizer.step()
    ```

    ```python good
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(batch).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    ```
    """
    scalers = calls_of(file, "torch.amp.GradScaler")
    steps = optimizer_steps(file)
    if len(scalers) != 1 or not is_always_on(file, scalers[0]) or "unscale_" in file.tree.words:
        return
    if any(update.what == "scaler" for update in steps):
        return
    for update in steps:
        made = [origin.node for origin in origins(file, update.target)]
        scaled = [
            b
            for b in backwards(file)
            if b.driver == "scaler"
            and file.tree.block(b.call) is file.tree.block(update.call)
            and position(b.call) < position(update.call)
            and not file.tree.exclusive(b.call, update.call)
        ]
        if scaled and made and all(isinstance(n, ast.Call) and is_optimizer_call(file, n) for n in made):
            yield error(
                update.call,
                "the loss was scaled, but this step uses the gradients as they are, 65536 times too large at first",
                help="scaler.step(optimizer), then scaler.update()",
                related=((scaled[0].call, "scaled here"),),
            )
