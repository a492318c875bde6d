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
def fsdp_without_a_policy(file: PythonFile, target: LintTarget) -> Iterator[Mark]:
    """The whole model is one FSDP unit: it is gathered whole for forward and backward, so sharding saves little.

    Peak memory then holds all parameters and all gradients at once, beside the shards. FSDP1 makes units by
    ``auto_wrap_policy`` over the block class; FSDP2 by a ``fully_shard`` per block, before the one of the root. With
    ``--model`` and ``--world-size`` the amounts are told (16-bit weights and gradients, Adam).

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
    message += _amount(target)
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


def _amount(target: LintTarget) -> str:
    """2 P of weights and 2 P of gradients beside 16 P / N of shards; by block only the shards and two blocks."""
    if target.model is None or target.world_size is None:
        return ""
    from dsgen.lint.amounts import in_bytes

    whole, ranks = target.model.parameters, target.world_size
    trained = target.model.trained(target.method)
    shards = (4 * whole + 12 * trained) / ranks
    blocks = 4 * 2 * target.model.shapes.largest_block if target.model.shapes else 0
    gpu = f" of the {in_bytes(target.gpu.memory)} of {target.gpu.name}" if target.gpu else ""
    return (
        f", 2 x {in_bytes(whole)} + 2 x {in_bytes(trained)} + shards of {in_bytes(shards)} = "
        f"{in_bytes(2 * whole + 2 * trained + shards)}{gpu}; by block about {in_bytes(shards + blocks)}"
        + ("" if blocks else " and two blocks")
    )


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
