from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.origins import constant
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import updates
from dsgen.lint.python.windows import Window, chains, has_an_end, is_one, loops_of, show, windows
from dsgen.lint.python.zeroing import zeroed_every_time
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC204", kinds=("python",), source="arithmetic; tests/conformance/test_training_claims.py")
def last_window_never_stepped(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The batches left over at the end of the data (their number mod k) are back-propagated, but never make an update.

    Their gradients are lost when training ends there, and leak into the first window of the next epoch otherwise. With
    fewer than k batches there is no update at all.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        for i, batch in enumerate(loader):
            (model(batch).mean() / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    tail = len(loader) % k
    for epoch in range(3):
        for i, batch in enumerate(loader):
            size = tail if i >= len(loader) - tail else k
            (model(batch).mean() / size).backward()
            if (i + 1) % k == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
    ```

    A counter that runs on from epoch to epoch loses nothing but the end of training, and is left alone; so is a loop of
    a fixed number of steps.
    """
    seen = set()
    for window in windows(file):
        if window.loop not in seen and window.gate is not None and _drops(file, window):
            seen.add(window.loop)
            size = show(window.size)
            yield warning(
                window.gate.test,
                f"the last len(loader) % {size} micro-batches of the data never make an update: their gradients are "
                f"lost, or leak into the next epoch; with fewer than {size} batches there is no update at all",
                help="let the last batch step, too (... or i + 1 == len(loader)), with the loss divided by the number "
                f"of micro-batches that are really in it; or use a multiple of {size}",
            )


def _drops(file: PythonFile, window: Window) -> bool:
    gate = window.gate
    assert gate is not None
    if gate.flushes or not gate.restarts or window.backward.driver not in ("plain", "scaler"):
        return False
    if is_one(file, gate.size) or not has_an_end(file, window) or zeroed_every_time(file, window):
        return False
    early = window.first_micro_batches(file)
    known = constant(file, gate.size)
    if early is not None and (early == 1 or known is not None):
        return False  # off by one: said elsewhere, and its cure changes the tail
    return not _flushed_behind(file, window)


def _flushed_behind(file: PythonFile, window: Window) -> bool:
    """An update behind the loop, or another one in it, can take the rest."""
    for update in updates(file):
        if update.what == "scheduler" or update.call is window.update.call:
            continue
        for chain in chains(file, update.call):
            inside = window.loop in loops_of(file, chain)
            if not inside and file.tree.precedes(window.loop, chain[-1]):
                return True
            if not inside and any(file.tree.precedes(window.loop, anchor) for anchor in chain):
                return True
            if (
                inside
                and not file.tree.exclusive(update.call, window.update.call)
                and _other_gate(file, window, update.call)
            ):
                return True
    return False


def _other_gate(file: PythonFile, window: Window, call: object) -> bool:
    return not any(other.update.call is call for other in windows(file) if other.loop is window.loop)
