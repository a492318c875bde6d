import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver, wraps_by
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC210",
    kinds=("python",),
    source="torch/distributed/fsdp: FSDPModule.set_requires_gradient_sync; tests/conformance/test_training_claims.py",
)
def gradient_sync_never_switched_on(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``set_requires_gradient_sync(False)`` and never True again: sharded gradients stay None, and nothing is trained.

    The flag keeps its value until it is set again.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model.set_requires_gradient_sync(False)
    for batch in loader:
        model(batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ```python good also=TC220
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    for i, batch in enumerate(loader):
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        model.set_requires_gradient_sync(last)
        (model(batch).mean() / 4).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    calls = file.tree.methods_called("set_requires_gradient_sync")
    if not calls or not wraps_by(file, "fsdp2") or not all(_switches_off(call) for call in calls):
        return
    for call in calls:
        if receiver(call) is not None:
            yield error(
                call,
                "gradient sync is switched off and never on again: sharded gradients stay None, so the optimizer "
                "changes nothing",
                help="call set_requires_gradient_sync(last) before each backward pass, True for the last micro-batch",
            )


def _switches_off(call: ast.Call) -> bool:
    given = call.args[0] if call.args else next((k.value for k in call.keywords), None)
    return isinstance(given, ast.Constant) and given.value is False
