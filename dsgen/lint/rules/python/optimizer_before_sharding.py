import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import parameters_of, wraps_by
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import is_optimizer_call
from dsgen.lint.python.sharding import keeps_parameters, strategy
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC503",
    kinds=("python",),
    source="torch/distributed/fsdp: parameters are replaced; tests/conformance/test_training_claims.py",
)
def optimizer_before_sharding(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The optimizer is built before the model is sharded: it holds the old parameters, and nothing is ever trained.

    ``fully_shard`` and FSDP1 (unless ``use_orig_params=True``) replace a module's parameters. DDP does not.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    ```

    ```python bad
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    model = FSDP(model, auto_wrap_policy=policy)
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    model = FSDP(model, auto_wrap_policy=policy, use_orig_params=True)
    ```
    """
    if wraps_by(file, "accelerate"):
        return  # prepare() hands the new parameters to the optimizer
    optimizers = [call for call in file.tree.calls if is_optimizer_call(file, call) and call.args]
    for call in optimizers:
        models = parameters_of(file, call.args[0])
        for wrap in [*wraps_by(file, "fsdp2"), *wraps_by(file, "fsdp1")]:
            if (
                wrap.subject is None
                or not file.tree.precedes(call, wrap.call)
                or _again(file, call, wrap.call, optimizers)
            ):
                continue
            if wrap.wrapper == "fsdp1" and (keeps_parameters(file, wrap) is not False or strategy(file, wrap) == "?"):
                continue
            mine = origins(file, wrap.subject)
            if any(mine & origins(file, model) for model in models) and all(not o.steps for o in mine):
                yield error(
                    call,
                    "the optimizer is built before the model is sharded: it keeps the parameters that sharding "
                    "replaces, "
                    "so nothing is trained",
                    help="build the optimizer after sharding"
                    + (", or pass use_orig_params=True" if wrap.wrapper == "fsdp1" else ""),
                    related=((wrap.call, "sharded here"),),
                )
                break


def _again(file: PythonFile, first: ast.Call, wrap: ast.Call, optimizers: list[ast.Call]) -> bool:
    """Whether another optimizer is built after sharding: then the first one may not be the one in use."""
    return any(other is not first and file.tree.precedes(wrap, other) for other in optimizers)
