import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_CONVERT = "torchao.float8.convert_to_float8_training"


@rule("TC407", kinds=("python",), source="torchao/float8/README.md: enable_fsdp_float8_all_gather is for FSDP2")
def fp8_all_gather_with_fsdp1(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``enable_fsdp_float8_all_gather`` with the FSDP1 class: gathering in float8 exists for ``fully_shard`` only.

    ```python bad
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    config = Float8LinearConfig(enable_fsdp_float8_all_gather=True)
    model = FSDP(convert_to_float8_training(Net(), config=config), auto_wrap_policy=policy)
    ```

    ```python good
    from torch.distributed.fsdp import fully_shard
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    config = Float8LinearConfig(enable_fsdp_float8_all_gather=True)
    model = convert_to_float8_training(Net(), config=config)
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    ```
    """
    for wrap in wraps_by(file, "fsdp1"):
        for origin in origins(file, wrap.subject) if wrap.subject is not None else ():
            if (
                isinstance(origin.node, ast.Call)
                and called(file, origin.node) == _CONVERT
                and _gathers(file, origin.node)
            ):
                yield error(
                    wrap.call,
                    "enable_fsdp_float8_all_gather needs fully_shard (FSDP2); this is the FSDP1 class",
                    help="convert the model to float8 first, then shard it with fully_shard: blocks, then the root",
                )


def _gathers(file: PythonFile, call: ast.Call) -> bool:
    config = argument(call, "config")
    for origin in origins(file, config) if config is not None else ():
        if isinstance(origin.node, ast.Call):
            on = argument(origin.node, "enable_fsdp_float8_all_gather")
            if isinstance(on, ast.Constant) and on.value is True:
                return True
    return False
