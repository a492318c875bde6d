import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wrapper_of, wraps_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC504", kinds=("python",), source="torch/distributed/fsdp/_flat_param.py: shards have one dimension")
def decay_groups_by_shape_after_fsdp1(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Parameters are sorted by their number of dimensions after FSDP1 has flattened them: none has two any more.

    The usual split, weight decay for matrices and none for vectors, then gives no parameter weight decay, without a
    word. Split by name, or before wrapping (with ``use_orig_params=True``); FSDP2 keeps shapes.

    ```python bad
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), auto_wrap_policy=policy, use_orig_params=True)
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    ```

    ```python good
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = Net()
    decayed = [name for name, p in model.named_parameters() if p.ndim >= 2]
    model = FSDP(model, auto_wrap_policy=policy, use_orig_params=True)
    ```
    """
    for node in file.tree.nodes:
        match node:
            case ast.comprehension(
                iter=ast.Call(func=ast.Attribute(value=model, attr="parameters" | "named_parameters"))
            ):
                if wrapper_of(file, model) == "fsdp1" and _after(file, model) and any(map(_by_shape, node.ifs)):
                    yield error(
                        node.ifs[0],
                        "FSDP1 has flattened the parameters: each has one dimension, so this split puts all on one "
                        "side",
                        help="split by name, or before wrapping with use_orig_params=True",
                    )


def _after(file: PythonFile, model: ast.expr) -> bool:
    """Wrapped before this line, in the same block of names (else the order is not known)."""
    return all(file.tree.precedes(wrap.call, model) for wrap in wraps_of(file, model))


def _by_shape(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Attribute(attr="ndim"), comparators=[ast.Constant(value=1 | 2)]):
            return True
        case ast.Compare(left=ast.Call(func=ast.Attribute(attr="dim")), comparators=[ast.Constant(value=1 | 2)]):
            return True
        case ast.Compare(left=ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(attr="shape")])):
            return True
    return False
