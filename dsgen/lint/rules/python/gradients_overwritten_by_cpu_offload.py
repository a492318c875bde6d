from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.forwards import models_in
from dsgen.lint.python.models import wraps_of
from dsgen.lint.python.offloading import offloads
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import controls_sync
from dsgen.lint.python.windows import is_one, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC208", kinds=("python",), source="torch/distributed/fsdp/fully_sharded_data_parallel.py: notes on cpu_offload")
def gradients_overwritten_by_cpu_offload(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """FSDP1 with CPU offload, accumulating without ``no_sync``: each backward pass replaces the offloaded gradient.

    Only the last micro-batch of a window counts, without a word.

    ```python bad
    import torch
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FSDP(
        Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), cpu_offload=CPUOffload(offload_params=True),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good also=TC220
    import contextlib
    import torch
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FSDP(
        Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), cpu_offload=CPUOffload(offload_params=True),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        with contextlib.nullcontext() if last else model.no_sync():
            (model(batch).mean() / 4).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    if controls_sync(file):
        return
    seen = set()
    for window in windows(file):
        if is_one(file, window.size) or window.backward.call in seen:
            continue
        wraps = [wrap for model, kind in models_in(file, window) if kind == "fsdp1" for wrap in wraps_of(file, model)]
        if any(offloads(file, wrap) for wrap in wraps):
            seen.add(window.backward.call)
            size = show(window.size)
            yield error(
                window.backward.call,
                "FSDP1 with CPU offload replaces the offloaded gradient in each backward pass instead of adding to it: "
                f"of {size} micro-batches only the last one counts",
                help=f"accumulate inside model.no_sync() (which keeps unsharded gradients in memory), make {size} 1, "
                f"or "
                "use fully_shard with CPUOffloadPolicy",
            )
