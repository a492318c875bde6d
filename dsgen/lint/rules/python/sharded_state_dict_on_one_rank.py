import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver, wrapper_of, wraps_of
from dsgen.lint.python.names import called
from dsgen.lint.python.ranks import on_one_rank
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import strategy
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_COLLECTIVE = "torch.distributed.checkpoint.state_dict.get_model_state_dict"


@rule(
    "TC803",
    kinds=("python",),
    source="torch/distributed/fsdp/_state_dict_utils.py: state_dict gathers; tests/conformance/test_training_claims.py",
)
def sharded_state_dict_on_one_rank(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The state dict of a sharded model is taken on rank 0 only: it needs every rank, so rank 0 waits.

    ```python bad
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), auto_wrap_policy=policy)
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "last.pt")
    ```

    ```python good
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
    model = FSDP(Net(), auto_wrap_policy=policy)
    config = FullStateDictConfig(rank0_only=True, offload_to_cpu=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, "last.pt")
    ```
    """
    for call in file.tree.methods_called("state_dict"):
        model = receiver(call)
        if model is None or wrapper_of(file, model) != "fsdp1" or call.args:
            continue
        if any(strategy(file, wrap) in ("NO_SHARD", "?") for wrap in wraps_of(file, model)):
            continue
        if on_one_rank(file, call) and not _is_local(file):
            yield _mark(call, "state_dict()")
    for call in file.tree.calls:
        if called(file, call) == _COLLECTIVE and on_one_rank(file, call):
            yield _mark(call, "get_model_state_dict()")


def _mark(call: ast.Call, name: str) -> Mark:
    return error(
        call,
        f"{name} of a sharded model gathers from every rank, but only one rank calls it: it waits for ever",
        help="call it on every rank, and write the file on rank 0 only (rank0_only=True, offload_to_cpu=True keep "
        "the full "
        "state dict off the other ranks)",
    )


def _is_local(file: PythonFile) -> bool:
    """LOCAL_STATE_DICT takes what a rank has."""
    return "LOCAL_STATE_DICT" in file.tree.words
