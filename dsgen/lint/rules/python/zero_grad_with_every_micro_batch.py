from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import is_one, show, windows
from dsgen.lint.python.zeroing import zeroed_every_time
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC212", kinds=("python",), source="arithmetic; tests/conformance/test_training_claims.py")
def zero_grad_with_every_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``zero_grad()`` in every pass of a loop that updates only every k passes: nothing is accumulated.

    Each update sees the gradient of one micro-batch; the other k - 1 are computed for nothing.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        optimizer.zero_grad()
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    seen = set()
    for window in windows(file):
        call = zeroed_every_time(file, window)
        if (
            call is None
            or call in seen
            or window.backward.driver not in ("plain", "scaler")
            or is_one(file, window.size)
        ):
            continue
        seen.add(call)
        size = show(window.size)
        yield error(
            call,
            f"gradients are cleared with every micro-batch, but used only every {size}: an update sees one micro-batch",
            help="clear them right after the update, under the same condition",
        )
