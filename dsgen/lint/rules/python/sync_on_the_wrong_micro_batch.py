import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wrapper_of
from dsgen.lint.python.origins import constant, same
from dsgen.lint.python.periods import Period, period_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import no_syncs
from dsgen.lint.python.windows import Window, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC209",
    kinds=("python",),
    source="torch/nn/parallel/distributed.py:no_sync; tests/conformance/test_training_claims.py",
)
def sync_on_the_wrong_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``no_sync()`` holds the very micro-batch that the update follows: gradients are used before they are exchanged.

    Each rank then steps with gradients of its own, and the copies of the model drift apart, without a word. ``no_sync``
    belongs around all micro-batches of a window but the last.

    ```python bad
    import contextlib
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        with model.no_sync() if last else contextlib.nullcontext():
            (model(batch).mean() / 4).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python bad
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        with model.no_sync():
            (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import contextlib
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        with model.no_sync() if not last else contextlib.nullcontext():
            (model(batch).mean() / 4).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    for call, model in no_syncs(file):
        if wrapper_of(file, model) not in ("ddp", "fsdp1"):
            continue
        for window in windows(file):
            if window.gate is not None and _holds_last(file, window, call):
                yield error(
                    call,
                    "no_sync() holds the micro-batch that the update follows: each rank steps with its own gradients, "
                    "and the copies of the model drift apart",
                    help="use it for all micro-batches of a window but the last",
                    related=((window.gate.test, "the update"),),
                )
                break


def _holds_last(file: PythonFile, window: Window, call: ast.Call) -> bool:
    gate = window.gate
    if gate is None or file.tree.loops(call)[:1] != [window.loop]:
        return False
    around = file.tree.parent.get(call)
    plainly = isinstance(around, ast.withitem)
    if isinstance(around, ast.withitem) and not file.tree.within(window.backward.call, file.tree.parent[around]):
        return False
    guards = file.tree.guards(call, window.loop)
    if not guards:
        # Always: only where the backward pass stands right in it, and no other one syncs.
        return plainly and _is_only_backward(file, window)
    period = period_of(file, guards, call)
    if period is None or period.loop is not gate.loop or not same(file, period.size, gate.size):
        return False
    return _same_pass(file, period, gate) != period.negated


def _is_only_backward(file: PythonFile, window: Window) -> bool:
    others = [w for w in windows(file) if w.loop is window.loop and w.backward.call is not window.backward.call]
    more = [c for c in file.tree.methods_called("backward") if window.loop in file.tree.loops(c)]
    return not others and len(more) == 1


def _same_pass(file: PythonFile, one: Period, other: Period) -> bool:
    size = constant(file, one.size)
    if isinstance(size, int) and size > 1:
        return one.first % size == other.first % size
    return one.first == other.first
