import ast
from collections.abc import Iterator
from itertools import pairwise

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.names import argument, called, calls_of, is_open, libraries
from dsgen.lint.python.origins import constant, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards
from dsgen.lint.python.tree import Loop
from dsgen.lint.python.windows import chains, loops_of
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_SAMPLER = "torch.utils.data.DistributedSampler"


@rule(
    "TC801",
    kinds=("python",),
    source="torch/utils/data/distributed.py: set_epoch seeds the shuffle; tests/conformance/test_training_claims.py",
)
def sampler_without_set_epoch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A shuffling ``DistributedSampler`` in a loop over epochs, without ``set_epoch``: every epoch has the same order.

    ```python bad
    import torch
    from torch.utils.data import DataLoader, DistributedSampler
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        for batch in loader:
            model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    from torch.utils.data import DataLoader, DistributedSampler
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in loader:
            model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    if "set_epoch" in file.tree.words or libraries(file) & {"accelerate", "lightning", "pytorch_lightning"}:
        return
    for sampler in calls_of(file, _SAMPLER):
        shuffle = argument(sampler, "shuffle", 3)
        if is_open(sampler) or (shuffle is not None and not _is_true(shuffle)):
            continue
        loop = _epochs(file, sampler)
        if loop is not None:
            yield warning(
                sampler,
                "without set_epoch(epoch) this sampler shuffles every epoch into the same order",
                help="call sampler.set_epoch(epoch) at the start of each epoch",
                related=((loop, "the loop over epochs"),),
            )


def _epochs(file: PythonFile, sampler: ast.Call) -> Loop | None:
    """The loop that goes several times over the data that this sampler orders, and trains on it."""
    for backward in backwards(file):
        for chain in chains(file, backward.call):
            loops = loops_of(file, chain)
            for inner, outer in pairwise(loops):
                over = [inner.iter] if isinstance(inner, ast.For) else []
                over += list(getattr(over[0], "args", [])) if over else []
                sampled = any(_uses(file, expression, sampler) for expression in over)
                if sampled and not file.tree.within(sampler, outer) and _is_several(file, outer):
                    return outer
    return None


def _uses(file: PythonFile, loader: ast.expr, sampler: ast.Call) -> bool:
    for origin in origins(file, loader):
        if called(file, origin.node) == "torch.utils.data.DataLoader" and isinstance(origin.node, ast.Call):
            given = argument(origin.node, "sampler", 3)
            if given is not None and any(o.node is sampler for o in origins(file, given)):
                return True
    return False


def _is_several(file: PythonFile, loop: Loop) -> bool:
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "id", "") == "range":
        return not (len(loop.iter.args) == 1 and constant(file, loop.iter.args[0]) == 1)
    return isinstance(loop, ast.For)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
