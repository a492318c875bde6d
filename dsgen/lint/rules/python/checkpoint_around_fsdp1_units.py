import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_WRAPPER = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper"


@rule(
    "TC608",
    kinds=("python",),
    source="torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py; torch's FSDP notes",
)
def checkpoint_around_fsdp1_units(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``checkpoint_wrapper`` around a module that is an FSDP unit already: the checkpoint belongs inside, FSDP outside.

    The recomputation then runs the unit's own gathering again.

    ```python bad also=TC604
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    block = checkpoint_wrapper(FSDP(Block()))
    ```

    ```python good
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    for i, block in enumerate(model.layers):
        model.layers[i] = FSDP(checkpoint_wrapper(block))
    model = FSDP(model)
    ```
    """
    units = {wrap.call for wrap in wraps_by(file, "fsdp1")}
    for call in calls_of(file, _WRAPPER):
        made = {origin.node for origin in origins(file, call.args[0]) if not origin.steps} if call.args else set()
        if made and made <= units and isinstance(call, ast.Call):
            yield warning(
                call,
                "the checkpoint is wrapped around an FSDP unit: recomputation gathers the parameters once more",
                help="wrap the checkpoint first, FSDP around it; or apply_activation_checkpointing after FSDP, on the "
                "inner block class, with NO_REENTRANT",
            )
