import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.bindings import bindings
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.origins import origins, tracer
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC605",
    kinds=("python",),
    source="torch/distributed/fsdp/_fully_shard: shared parameters; tests/conformance/test_training_claims.py",
)
def tied_weights_in_two_units(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Two modules that share one weight become two FSDP2 units.

    torch 2.12 and later raise ValueError; before, each unit got a weight of its own, and the tie was gone without a
    word. Both modules belong into one unit: leave them to the root, or shard them together.

    ```python bad
    import torch.nn as nn
    from torch.distributed.fsdp import fully_shard

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(32000, 512)
            self.head = nn.Linear(512, 32000, bias=False)
            self.head.weight = self.emb.weight

    model = LM()
    fully_shard(model.emb)
    fully_shard(model.head)
    fully_shard(model)
    ```

    ```python good
    import torch.nn as nn
    from torch.distributed.fsdp import fully_shard

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(32000, 512)
            self.head = nn.Linear(512, 32000, bias=False)
            self.head.weight = self.emb.weight

    model = LM()
    fully_shard([model.emb, model.head])
    fully_shard(model)
    ```
    """
    units: dict[tuple[ast.ClassDef, str], ast.Call] = {}
    for wrap in wraps_by(file, "fsdp2"):
        for origin in origins(file, wrap.subject) if wrap.subject is not None else ():
            owner = tracer(file).callee(origin.node) if isinstance(origin.node, ast.Call) else None
            match origin.steps:
                case (str() as attribute,) if isinstance(owner, ast.ClassDef):
                    units[owner, attribute] = wrap.call
    for owner, one, other, statement in _ties(file):
        mine, theirs = units.get((owner, one)), units.get((owner, other))
        # One of the two in a unit of its own takes the weight out of the root, where the other one is.
        named = mine or theirs
        if named is not None:
            yield error(
                named,
                f"{one} and {other} share one weight, but are put into two units: ValueError since torch 2.12, "
                f"silently "
                "untied before",
                help=f"leave both to the root, or fully_shard([model.{one}, model.{other}])",
                related=((statement, "the tie"),),
            )


def _ties(file: PythonFile) -> Iterator[tuple[ast.ClassDef, str, str, ast.stmt]]:
    """``self.head.weight = self.emb.weight`` in a class."""
    for node in file.tree.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=one), attr="weight")],
                value=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=other), attr="weight"),
            ):
                function = file.tree.function(node)
                owner = bindings(file).owner(function) if function is not None else None
                if owner is not None:
                    yield owner, one, other, node
