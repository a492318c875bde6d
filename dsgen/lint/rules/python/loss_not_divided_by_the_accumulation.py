import re
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import writes_gradients
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.scaling import scaling_of
from dsgen.lint.python.windows import Window, is_one, show, windows
from dsgen.lint.python.zeroing import zeroed_every_time
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# A loop of passes before one update adds up a batch only if it is called so: it can be tasks, or samples, too.
_ACCUMULATION = re.compile(r"accum|micro|\bgas\b", re.IGNORECASE)


@rule("TC202", kinds=("python",), source="arithmetic; tests/conformance/test_training_claims.py")
def loss_not_divided_by_the_accumulation(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Gradients of k micro-batches are added up, but the loss is not divided by k: they come out k times too large.

    ``backward`` adds. The sum of k means is k times the mean of the whole batch: plain SGD makes steps k times as long,
    and a threshold for clipping bites k times as early. Adam hides it (it divides by the gradient's own size), until
    clipping, weight decay or epsilon tell.

    ```python bad
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        if (i + 1) % 8 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(model(x), y) / 8
        loss.backward()
        if (i + 1) % 8 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    The same for a loop over the micro-batches of one update:

    ```python bad
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        for micro_step in range(gradient_accumulation_steps):
            loss = model(next(batches)).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    Losses that are sums (to be divided by the tokens of the whole window), and those that come from a function that is
    given k, are left alone.
    """
    if writes_gradients(file):
        return
    seen = set()
    for window in windows(file):
        if window.backward.call not in seen and _undivided(file, window):
            seen.add(window.backward.call)
            size = show(window.size)
            yield error(
                window.backward.call,
                f"the loss is not divided by {size}: the gradients of {size} micro-batches are added up, so they are "
                f"{size} times too large",
                help=f"({show(window.backward.loss)} / {size}).backward(), or divide by the tokens of the whole window",
            )


def _undivided(file: PythonFile, window: Window) -> bool:
    if window.size is None or is_one(file, window.size) or window.backward.driver not in ("plain", "scaler"):
        return False
    if window.gate is None and not _ACCUMULATION.search(show(window.size)):
        return False
    if zeroed_every_time(file, window):
        return False  # nothing adds up: another mistake
    scaling = scaling_of(file, window.backward.loss, window.size)
    return bool(scaling.calls) and not scaling.divisors and not scaling.hidden
