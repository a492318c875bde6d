import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.models import wrapper_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards
from dsgen.lint.python.scaling import scaling_of
from dsgen.lint.python.syncing import no_syncs
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC211",
    kinds=("python",),
    source="torch/nn/parallel/distributed.py: forward reads the flag; tests/conformance/test_training_claims.py",
)
def no_sync_without_the_forward_pass(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``no_sync()`` around the backward pass only: DDP reads the flag in forward, so nothing is saved.

    ```python bad
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    loss = model(batch).mean()
    with model.no_sync():
        loss.backward()
    ```

    ```python good
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(torch.nn.Linear(8, 1))
    with model.no_sync():
        loss = model(batch).mean()
        loss.backward()
    ```
    """
    for call, model in no_syncs(file):
        if wrapper_of(file, model) != "ddp":
            continue
        holder = next((a for a, _ in file.tree.above(call) if isinstance(a, ast.With)), None)
        if holder is None or not any(file.tree.within(call, item) for item in holder.items):
            continue
        inside = [b for b in backwards(file) if file.tree.within(b.call, holder)]
        forwards = [c for b in inside for c in scaling_of(file, b.loss).calls]
        direct = [c for c in forwards if wrapper_of(file, c.func) == "ddp"]
        # Only where the very call of the model can be seen, outside, and no other call of it stands inside.
        if inside and direct and not any(file.tree.within(c, holder) for c in forwards):
            yield warning(
                call,
                "DDP reads no_sync() in the forward pass, which stands outside: the gradients are exchanged all the "
                "same",
                help="put forward and backward inside",
                related=((direct[0], "the forward pass"),),
            )
