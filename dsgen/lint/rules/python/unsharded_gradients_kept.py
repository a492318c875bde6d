import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.python.models import receiver, wrapper_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import no_syncs
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# What takes less than this share of the card is a fair price for less traffic.
_ROOM = 4


@rule(
    "TC220",
    kinds=("python",),
    source="torch/distributed/fsdp: no_sync and set_requires_gradient_sync keep whole gradients",
)
def unsharded_gradients_kept(file: PythonFile, target: LintTarget) -> Iterator[Mark]:
    """Gradient sync of a sharded model is put off: every rank then keeps the whole gradient between micro-batches.

    Advice (``--info``), for it is a trade of memory against traffic: 4 bytes per parameter (2 where gradients are
    reduced in 16 bit) on every rank, instead of that divided by the ranks. With ``--model`` the amount is told, and it
    is a warning, unless ``--gpu`` has room for four times as much.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        last = (i + 1) % 8 == 0 or i + 1 == len(loader)
        model.set_requires_gradient_sync(last)
        (model(batch).mean() / 8).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(Net())
    with model.no_sync():
        model(batch).mean().backward()
    ```
    """
    switches = [
        (call, receiver(call))
        for call in file.tree.methods_called("set_requires_gradient_sync")
        if call.args and not isinstance(call.args[0], ast.Constant)
    ]
    for call, model in [*switches, *no_syncs(file)]:
        wrapper = wrapper_of(file, model) if model is not None else None
        if (wrapper == "fsdp2" and call in dict(switches)) or wrapper == "fsdp1":
            amount, much = _amount(target)
            yield (warning if much else info)(
                call,
                f"between micro-batches every rank keeps the whole unsharded gradient{amount}",
                help="where memory is short, exchange gradients with every micro-batch; with HSDP put off only the "
                "all-reduce (set_requires_all_reduce); with accelerate sync_each_batch=True",
            )
            return


def _amount(target: LintTarget) -> tuple[str, bool]:
    """The bytes in words, and whether they matter."""
    if target.model is None:
        return "", False
    from dsgen.lint.amounts import elements, in_bytes

    trained = target.model.trained(target.method)
    shards = f", against 1/{target.world_size} of that sharded" if target.world_size else ""
    text = f": {elements(trained)} x 4 bytes = {in_bytes(4 * trained)} in fp32, {in_bytes(2 * trained)} in bf16{shards}"
    return text, target.gpu is None or 2 * trained * _ROOM > target.gpu.memory
