import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called, is_open
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import has_policy, strategy
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_HYBRID = ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")


@rule("TC602", kinds=("python",), source="torch/distributed/fsdp/_init_utils.py: hybrid strategies want two groups")
def hybrid_shard_without_a_mesh(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """FSDP1's hybrid sharding needs two dimensions: ranks that share a copy, and ranks that hold another one.

    A mesh of one dimension raises ValueError; so does a hybrid wrap without mesh, groups and policy.

    ```python bad
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
    mesh = init_device_mesh("cuda", (16,))
    model = FSDP(
        Net(), auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh,
    )
    ```

    ```python good
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
    mesh = init_device_mesh("cuda", (2, 8))
    model = FSDP(
        Net(), auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh,
    )
    ```
    """
    for wrap in wraps_by(file, "fsdp1"):
        if strategy(file, wrap) not in _HYBRID or is_open(wrap.call):
            continue
        mesh = argument(wrap.call, "device_mesh")
        group = argument(wrap.call, "process_group", 1)
        help = (
            'give a mesh of two dimensions, replicas and shards: init_device_mesh("cuda", (replicas, shard_size)), for '
            "example (2, 8) for two nodes of 8 GPUs"
        )
        if mesh is None and group is None and not has_policy(wrap):
            yield error(
                wrap.call, "hybrid sharding without a device mesh, process groups or a policy: ValueError", help=help
            )
        elif mesh is not None and _is_flat(file, mesh):
            yield error(mesh, "hybrid sharding needs a mesh of 2 dimensions, this one has 1: ValueError", help=help)


def _is_flat(file: PythonFile, mesh: ast.expr) -> bool:
    made = origins(file, mesh)
    return bool(made) and all(not origin.steps and _dimensions(file, origin.node) == 1 for origin in made)


def _dimensions(file: PythonFile, node: ast.AST) -> int | None:
    if called(file, node) != "torch.distributed.device_mesh.init_device_mesh" or not isinstance(node, ast.Call):
        return None
    shape = argument(node, "mesh_shape", 1)
    return len(shape.elts) if isinstance(shape, ast.Tuple | ast.List) else None
