import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import is_accelerator, receiver
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import is_one, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC217", kinds=("python",), source="accelerate/accelerator.py: accumulate; optimizer.py: step is skipped until sync"
)
def second_gate_inside_accumulate(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``optimizer.step()`` every k passes inside ``accelerator.accumulate``, which is such a gate itself.

    Two gates let through less than either, and what is left over leaks into the next window. Inside ``accumulate`` the
    prepared optimizer skips the steps that are not due.

    ```python bad
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for i, batch in enumerate(loader):
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ```python good
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for i, batch in enumerate(loader):
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    seen = set()
    for window in windows(file):
        if window.gate is None or window.backward.driver != "accelerate" or is_one(file, window.size):
            continue
        around = [a for a, _ in file.tree.above(window.backward.call) if isinstance(a, ast.With)]
        if window.update.call not in seen and any(_accumulates(file, node) for node in around):
            seen.add(window.update.call)
            yield error(
                window.gate.test,
                "accumulate() already lets the update through every so many passes; a second gate drops updates and "
                "lets "
                "gradients leak into the next window",
                help="call optimizer.step() and zero_grad() in every pass: accelerate skips those that are not due",
                related=((window.update.call, "the update"),),
            )


def _accumulates(file: PythonFile, node: ast.With) -> bool:
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "accumulate":
            owner = receiver(call)
            return owner is not None and is_accelerator(file, owner)
    return False
