import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import Wrap, wraps_by
from dsgen.lint.python.names import argument, is_open
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import policy_call
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC405",
    kinds=("python",),
    source="torch/distributed/fsdp/_fully_shard: mp_policy is per call; tests/conformance/test_training_claims.py",
)
def mp_policy_on_some_modules_only(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``mp_policy`` is given to some ``fully_shard`` calls of a model and not to others. It is not inherited.

    With it on the root only, blocks stay float32 while their inputs become bfloat16: RuntimeError in the first layer.

    ```python bad
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model, mp_policy=policy)
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    model = Net()
    for block in model.layers:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    ```
    """
    by_model: dict[ast.AST, list[Wrap]] = {}
    for wrap in wraps_by(file, "fsdp2"):
        for node in {o.node for o in origins(file, wrap.subject)} if wrap.subject is not None else ():
            by_model.setdefault(node, []).append(wrap)
    for wraps in by_model.values():
        with_policy = [
            w for w in wraps if (made := policy_call(file, w)) is not None and argument(made, "param_dtype", 0)
        ]
        without = [w for w in wraps if argument(w.call, "mp_policy") is None and not is_open(w.call)]
        pairs = [(w, o) for w in with_policy for o in without if not file.tree.exclusive(w.call, o.call)]
        if not pairs or len(with_policy) + len(without) != len(wraps):
            continue
        yield error(
            without[0].call,
            "mp_policy is not inherited: this module stays in its own dtype, while others of the model compute in "
            "another one, and inputs do not fit",
            help="pass the same mp_policy to every fully_shard call of the model",
            related=((with_policy[0].call, "the policy is given here"),),
        )
