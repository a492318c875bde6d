from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver, wrapper_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import show
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC611", kinds=("python",), source="torch/distributed/fsdp/_fully_shard: FSDPModule has no clip_grad_norm_")
def clip_method_that_fsdp2_lacks(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``model.clip_grad_norm_()`` on a model that ``fully_shard`` sharded: only FSDP1 has it; AttributeError.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model(batch).mean().backward()
    model.clip_grad_norm_(1.0)
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model(batch).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    ```
    """
    for call in file.tree.methods_called("clip_grad_norm_"):
        model = receiver(call)
        if model is not None and wrapper_of(file, model) == "fsdp2":
            yield error(
                call,
                f"{show(model)} is sharded by fully_shard, and FSDP2 has no clip_grad_norm_ method: AttributeError",
                help=f"torch.nn.utils.clip_grad_norm_({show(model)}.parameters(), max_norm): with DTensors it is right",
            )
