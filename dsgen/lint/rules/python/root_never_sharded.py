import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.origins import Origin, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards
from dsgen.lint.python.sharding import blocks_and_roots, is_item
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC607",
    kinds=("python",),
    source="torch/distributed/fsdp/_fully_shard; tests/conformance/test_training_claims.py",
)
def root_never_sharded(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Only the blocks are sharded, the model around them is not: the gradients of its own parameters are not reduced.

    Embeddings, norms and the head then differ from rank to rank, without a word.

    ```python bad
    import torch
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    optimizer = torch.optim.AdamW(model.parameters())
    model(batch).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    model(batch).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    ```
    """
    blocks, roots = blocks_and_roots(file)
    if roots or not blocks or not backwards(file) or "replicate" in file.tree.words:
        return  # without a training loop in the file, the root may be sharded by whoever trains
    parts = [o for block in blocks if block.subject is not None for o in origins(file, block.subject)]
    if any(not is_item(part) for part in parts):
        return
    if all(isinstance(part.node, ast.Call) for part in parts) and not _handed_on(file, parts):
        yield error(
            blocks[-1].call,
            "only blocks are sharded, the model around them is not: the gradients of its other parameters are not "
            "reduced, and ranks drift apart",
            help="call fully_shard(model) after the blocks",
        )


def _handed_on(file: PythonFile, parts: list[Origin]) -> bool:
    """Whether the model is given to something that cannot be seen, which may shard the rest."""
    models = {Origin(part.node) for part in parts}
    for call in file.tree.calls:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Name) and any(
            isinstance(value, ast.Name | ast.Attribute) and origins(file, value) & models for value in given
        ):
            return True
    return False
