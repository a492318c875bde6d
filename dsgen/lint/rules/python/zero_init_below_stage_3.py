import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import engine_config, stage_of
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, calls_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("XF301", kinds=("python",), source="deepspeed/runtime/zero/partition_parameters.py:Init")
def zero_init_below_stage_3(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A model is built under ``deepspeed.zero.Init`` and trained below ZeRO stage 3: its weights stay cut up.

    zero.Init partitions every parameter as it is made. Only stage 3 gathers them again; at other stages the first
    forward pass meets flat pieces ("mat2 must be a matrix, got 1-D tensor").

    ```python bad
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {}}}
    with deepspeed.zero.Init():
        model = Net()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```

    ```python good
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW", "params": {}}}
    with deepspeed.zero.Init():
        model = Net()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```

    ```python good
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {}}}
    with deepspeed.zero.Init(enabled=args.zero_stage == 3):
        model = Net()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```
    """
    engines = wraps_by(file, "deepspeed")
    stages = {stage_of(engine_config(file, wrap)) for wrap in engines}
    # With several engines (a frozen one beside a trained one) it is open which model is whose.
    if len(engines) != 1 or not stages <= {0, 1, 2}:
        return
    (stage,) = stages
    given = argument(engines[0].call, "config", 10)
    for call in calls_of(file, "deepspeed.zero.Init"):
        enabled = argument(call, "enabled")
        if enabled is None or (isinstance(enabled, ast.Constant) and enabled.value is True):
            yield error(
                call,
                f"zero.Init cuts every weight up, and at ZeRO stage {stage} nothing gathers them: the first forward "
                "pass fails",
                help="use stage 3, or build the model without zero.Init (enabled=False)",
                related=related(file, given, "deepspeed", ("zero_optimization", "stage"), f"stage {stage}"),
            )
