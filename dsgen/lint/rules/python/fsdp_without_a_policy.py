import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.models import Wrap, wraps_by
from dsgen.lint.python.names import called, calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import blocks_and_roots, has_policy, is_part, strategy
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC604", kinds=("python",), source="torch/distributed/fsdp: without a policy the model is one unit")
def fsdp_without_a_policy(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The whole model is one FSDP unit: it is gathered whole for forward and backward, so sharding saves little.

    Peak memory then holds all parameters and all gradients at once, beside the shards. FSDP1 makes units by
    ``auto_wrap_policy`` over the block class; FSDP2 by a ``fully_shard`` per block, before the one of the root.

    ```python bad
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), use_orig_params=True)
    ```

    ```python good
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FSDP(Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True)
    ```

    ```python bad
    from torch.distributed.fsdp import fully_shard
    model = Net()
    fully_shard(model)
    ```

    ```python good
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    ```
    """
    message = "the whole model is one unit: all its parameters, and all gradients, are gathered at once on every rank"
    if not calls_of(file, "torch.distributed.fsdp.wrap.wrap", "torch.distributed.fsdp.wrap.enable_wrap"):
        for wrap in _lonely_fsdp1(file):
            yield warning(
                wrap.call,
                message,
                help="give an auto_wrap_policy over the block class: ModuleWrapPolicy({Block})",
            )
    blocks, roots = blocks_and_roots(file)
    if blocks or len(roots) != 1 or not _is_made_here(file, roots[0]):
        return
    yield warning(roots[0].call, message, help="call fully_shard on each block first, then on the root")


def _lonely_fsdp1(file: PythonFile) -> list[Wrap]:
    wraps = wraps_by(file, "fsdp1")
    return [
        wrap
        for wrap in wraps
        if len(wraps) == 1
        and not has_policy(wrap)
        and strategy(file, wrap) not in ("NO_SHARD", "?")
        and _is_made_here(file, wrap)
    ]


def _is_made_here(file: PythonFile, wrap: Wrap) -> bool:
    """A model that stands in the file as such; a parameter, a submodule or a loop's item may be a block."""
    made = origins(file, wrap.subject) if wrap.subject is not None else frozenset()
    return bool(made) and all(
        isinstance(o.node, ast.Call) and not is_part(o) and _has_blocks(file, o.node) for o in made
    )


def _has_blocks(file: PythonFile, node: ast.Call) -> bool:
    """A layer of torch alone (a test's ``nn.Linear``) has no blocks to shard apart."""
    return not (called(file, node) or "").startswith("torch.nn.")
