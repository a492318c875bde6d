from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wrapper_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import no_syncs
from dsgen.lint.python.windows import show
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC206",
    kinds=("python",),
    source="torch/distributed/fsdp/_fully_shard: FSDPModule has no no_sync; tests/conformance/test_training_claims.py",
)
def no_sync_on_an_fsdp2_model(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``no_sync()`` on a model that ``fully_shard`` sharded: FSDP2 has no such method, so it raises AttributeError.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    with model.no_sync():
        model(batch).mean().backward()
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model.set_requires_gradient_sync(False)
    model(first).mean().backward()
    model.set_requires_gradient_sync(True)
    model(second).mean().backward()
    ```
    """
    for call, model in no_syncs(file):
        if wrapper_of(file, model) == "fsdp2":
            name = show(model)
            yield error(
                call,
                f"{name} is sharded by fully_shard, and FSDP2 has no no_sync(): AttributeError",
                help=f"call {name}.set_requires_gradient_sync(last) before the backward pass of each micro-batch",
            )
