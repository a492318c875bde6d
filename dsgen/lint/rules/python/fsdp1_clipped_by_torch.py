from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import torch_clips
from dsgen.lint.python.models import parameters_of, wrapper_of, wraps_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import strategy
from dsgen.lint.python.windows import show
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC601",
    kinds=("python",),
    source="torch/distributed/fsdp/fully_sharded_data_parallel.py:clip_grad_norm_; "
    "tests/conformance/test_training_claims.py",
)
def fsdp1_clipped_by_torch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``torch.nn.utils.clip_grad_norm_`` on an FSDP1 model: it sees the norm of this rank's shard only.

    Every rank then scales its shard by another factor, so the gradient points elsewhere. The model's own method adds
    the norms of all ranks up. (FSDP2's parameters are DTensors: there torch's function is right.)

    ```python bad
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), auto_wrap_policy=policy)
    model(batch).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), auto_wrap_policy=policy)
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
    for call in torch_clips(file):
        for model in parameters_of(file, call.args[0]) if call.args else ():
            wraps = wraps_of(file, model)
            if wrapper_of(file, model) == "fsdp1" and not any(strategy(file, wrap) in _WHOLE for wrap in wraps):
                name = show(model)
                yield error(
                    call,
                    "torch's clip_grad_norm_ sees only this rank's shard of an FSDP1 model: every rank clips by "
                    "another "
                    "factor",
                    help=f"call {name}.clip_grad_norm_(max_norm) on the root FSDP model",
                )
                break


# Whole gradients on every rank; or a strategy that is chosen when the code runs.
_WHOLE = ("NO_SHARD", "?")
