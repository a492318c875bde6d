from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver, wraps_of
from dsgen.lint.python.ranks import on_one_rank
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC805",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:save_checkpoint",
)
def checkpoint_saved_on_one_rank(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``engine.save_checkpoint`` on rank 0 only: every rank saves its own part, and they wait for each other.

    ```python bad
    import deepspeed
    import torch.distributed as dist
    engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
    if dist.get_rank() == 0:
        engine.save_checkpoint("checkpoints")
    ```

    ```python good
    import deepspeed
    engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
    engine.save_checkpoint("checkpoints")
    ```
    """
    for call in file.tree.methods_called("save_checkpoint"):
        engine = receiver(call)
        if engine is None or not on_one_rank(file, call):
            continue
        if any(wrap.wrapper == "deepspeed" for wrap in wraps_of(file, engine)):
            yield error(
                call,
                "save_checkpoint() must be called on every rank, but only one calls it: it waits for ever",
                help="call it on all ranks; DeepSpeed decides who writes what",
            )
