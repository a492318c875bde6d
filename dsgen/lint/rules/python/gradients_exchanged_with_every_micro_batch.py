from collections.abc import Iterator

from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.python.forwards import models_in
from dsgen.lint.python.models import Wrapper
from dsgen.lint.python.offloading import offloads_parameters
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import controls_sync
from dsgen.lint.python.windows import Window, is_one, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC205",
    kinds=("python",),
    source="torch/nn/parallel/distributed.py:no_sync; torch/distributed/fsdp; "
    "tests/conformance/test_training_claims.py",
)
def gradients_exchanged_with_every_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Gradient accumulation that exchanges gradients after every micro-batch instead of once per update.

    DDP all-reduces in every backward pass: k times per update, where once is enough; the result is the same, the time
    on the network is k times as long. ``no_sync()`` leaves it out, and has to hold the forward pass as well as the
    backward pass.

    ```python bad
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        loss = model(batch).mean() / k
        loss.backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
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
        last = (i + 1) % k == 0 or i + 1 == len(loader)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = model(batch).mean() / k
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```

    For sharded models it is a trade, so it is advice only (``--info``): FSDP1 (``no_sync()``) and FSDP2
    (``set_requires_gradient_sync(last)``; it has no ``no_sync``) then keep the whole unsharded gradient on every rank
    between micro-batches.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        (model(batch).mean() / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    if controls_sync(file):
        return
    seen = set()
    for window in windows(file):
        if (
            window.backward.driver not in ("plain", "scaler")
            or is_one(file, window.size)
            or window.backward.call in seen
        ):
            continue
        wrappers = {wrapper for _, wrapper in models_in(file, window)}
        if len(wrappers) == 1:
            seen.add(window.backward.call)
            yield from _mark(file, window, wrappers.pop())


def _mark(file: PythonFile, window: Window, wrapper: Wrapper) -> Iterator[Mark]:
    size = show(window.size)
    if wrapper == "ddp":
        yield warning(
            window.backward.call,
            f"DistributedDataParallel all-reduces the gradients in each of {size} backward passes; one per update is "
            "enough",
            help="run forward and backward of all but the last micro-batch of a window inside model.no_sync()",
        )
    elif wrapper == "fsdp1" and not offloads_parameters(file):
        yield info(
            window.backward.call,
            f"FullyShardedDataParallel reduce-scatters the gradients in each of {size} backward passes",
            help="inside model.no_sync() they are exchanged once per update, at the price of memory: every rank then "
            "keeps the whole unsharded gradient between micro-batches",
        )
    elif wrapper == "fsdp2":
        yield info(
            window.backward.call,
            f"fully_shard reduce-scatters the gradients in each of {size} backward passes",
            help="model.set_requires_gradient_sync(last) before the backward pass exchanges them once per update, at "
            "the "
            "price of memory: every rank then keeps the whole unsharded gradient between micro-batches",
        )
