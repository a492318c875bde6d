from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import blocks_and_roots
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC606",
    kinds=("python",),
    source="torch/distributed/fsdp/_fully_shard/_fully_shard.py; tests/conformance/test_training_claims.py",
)
def root_sharded_before_its_blocks(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``fully_shard`` on the whole model before its blocks: the root takes every parameter.

    FSDP2 is applied from the bottom up. Sharding a block whose parameters are sharded already raises TypeError, with
    a message that does not tell why.

    ```python bad
    from torch.distributed.fsdp import fully_shard
    model = Net()
    fully_shard(model)
    for block in model.layers:
        fully_shard(block)
    ```

    ```python good
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    ```
    """
    blocks, roots = blocks_and_roots(file)
    for root in roots:
        mine = {o for o in origins(file, root.subject) if not o.steps} if root.subject is not None else set()
        for block in blocks:
            parts = origins(file, block.subject) if block.subject is not None else frozenset()
            inside = bool(parts) and all(any(part.node is whole.node for whole in mine) for part in parts)
            if inside and file.tree.precedes(root.call, block.call):
                yield error(
                    root.call,
                    "the root is sharded before its blocks: it takes their parameters, and sharding a block then "
                    "raises "
                    "TypeError",
                    help="shard the blocks first, the root last",
                    related=((block.call, "a block"),),
                )
                break
