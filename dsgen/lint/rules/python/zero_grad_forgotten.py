from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import writes_gradients
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards, is_optimizer_call, optimizer_steps
from dsgen.lint.python.windows import chains, loops_of
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC213",
    kinds=("python",),
    source="torch.autograd adds into .grad; tests/conformance/test_training_claims.py",
)
def zero_grad_forgotten(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A training loop that never clears gradients: every update uses the sum of all gradients since the start.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        model(batch).mean().backward()
        optimizer.step()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        model(batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    ```
    """
    if "zero_grad" in file.tree.words or writes_gradients(file) or any("zero_grad" in word for word in file.tree.words):
        return
    passes = [loop for back in backwards(file) for chain in chains(file, back.call) for loop in loops_of(file, chain)]
    for update in optimizer_steps(file):
        made = origins(file, update.target)
        if not made or not all(is_optimizer_call(file, origin.node) for origin in made):
            continue
        loops = {loop for chain in chains(file, update.call) for loop in loops_of(file, chain)}
        fresh = any(file.tree.within(origin.node, loop) for origin in made for loop in loops)
        if loops & set(passes) and not fresh:
            yield error(
                update.call,
                "gradients are never cleared: this update uses the sum of all gradients since the start",
                help="call optimizer.zero_grad() after the step",
            )
            return
