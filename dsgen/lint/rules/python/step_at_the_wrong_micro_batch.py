import ast
from collections.abc import Iterator

from dsgen.lint.mark import Change, Mark, Step, error, warning
from dsgen.lint.python.origins import constant
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import Window, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC201", kinds=("python",), source="arithmetic; tests/conformance/test_training_claims.py")
def step_at_the_wrong_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Gradient accumulation whose gate is off by one: the first update comes too early, or too late.

    ``i % k == 0`` with ``i`` from 0 holds in the very first pass: the first update is made from one micro-batch, every
    later one from the k - 1 that follow and one more, and the end of the data is left over. With the loss divided by
    k, that first update is also k times too small.

    ```python bad
    import torch
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(loader):
        loss = model(batch).mean() / accumulation_steps
        loss.backward()
        if step % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python fixed
    import torch
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(loader):
        loss = model(batch).mean() / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    A counter that starts at 0 and grows after the test is the same mistake:

    ```python bad
    import torch
    step = 0
    for batch in loader:
        (model(batch).mean() / 4).backward()
        if step % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        step += 1
    ```

    Right are, beside ``(i + 1) % k == 0``: ``i % k == k - 1``, an index that starts at 1, a counter that grows before
    the test.

    ```python good
    import torch
    for step, batch in enumerate(loader, start=1):
        (model(batch).mean() / 4).backward()
        if step % 4 == 0 or step == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    for step, batch in enumerate(loader):
        (model(batch).mean() / k).backward()
        if step % k == k - 1 or step == len(loader) - 1:
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    seen: set[ast.AST] = set()
    for window in windows(file):
        if window.gate is not None and window.gate.test not in seen:
            seen.add(window.gate.test)
            yield from _judge(file, window)


def _judge(file: PythonFile, window: Window) -> Iterator[Mark]:
    assert window.gate is not None
    gate, size = window.gate, show(window.gate.size)
    early = window.first_micro_batches(file)
    known = constant(file, gate.size)
    if early is None or (known is None and early != 1) or known == 1:
        return
    help = f"count the micro-batches from one: ({show(_counter(gate.test))} + 1) % {size} == 0"
    if gate.skips_zero:
        message = (
            f"the first update comes after {size} + {early} micro-batches, one too many: the index starts at 0, so the "
            f"first pass that is kept out is a micro-batch, too"
        )
        yield warning(gate.test, message, help=help, fix=_fix(gate.test))
        return
    batches = "1 micro-batch" if early == 1 else f"{early} micro-batches"
    message = f"the first update comes after {batches} instead of {size}, and every window after it is off"
    yield error(gate.test, message, help=help, fix=_fix(gate.test))


def _counter(test: ast.expr) -> ast.expr | None:
    match test:
        case ast.Compare(left=ast.BinOp(left=ast.Name() as counter, op=ast.Mod())):
            return counter
    return None


def _fix(test: ast.expr) -> Change | None:
    """Only for the plain spelling, and to be looked at: the index may have other uses."""
    match test:
        case ast.Compare(
            left=ast.BinOp(left=ast.Name(id=name) as counter, op=ast.Mod()),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=0)],
        ):
            return Change("count from one", (Step("replace", counter, f"({name} + 1)"),), safe=False)
    return None
