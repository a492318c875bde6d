import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config, look, stage_of
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import is_optimizer_call
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC506", kinds=("python",), source="deepspeed/runtime/engine.py: zero_force_ds_cpu_optimizer")
def client_optimizer_with_offload(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The config offloads the optimizer to the CPU, but the script hands in an optimizer of torch: DeepSpeed raises.

    ``zero_force_ds_cpu_optimizer`` (true by default) wants DeepSpeedCPUAdam, or an optimizer section in the config.

    ```python bad
    import deepspeed
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    ```

    ```python good
    import deepspeed
    from deepspeed.ops.adam import DeepSpeedCPUAdam
    optimizer = DeepSpeedCPUAdam(model.parameters())
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    ```
    """
    for wrap in wraps_by(file, "deepspeed"):
        config = engine_config(file, wrap)
        device = look(config, "zero_optimization", "offload_optimizer", "device", default="none")
        forced = look(config, "zero_force_ds_cpu_optimizer", default=True)
        given = argument(wrap.call, "optimizer", 2)
        if given is None or device not in ("cpu", "nvme") or forced is not True or stage_of(config) in (0, None):
            continue
        made = [origin.node for origin in origins(file, given)]
        if made and all(_is_foreign(file, node) for node in made):
            yield error(
                given,
                f"the config offloads the optimizer to {device}, but this one is not DeepSpeed's CPU optimizer: "
                "initialize() raises",
                help="use DeepSpeedCPUAdam (DeepSpeedCPULion is accepted since 0.18), or an optimizer section in the "
                "config; "
                "or set zero_force_ds_cpu_optimizer to false, knowing that it is slow",
                related=((wrap.call, "the config is given here"),),
            )


def _is_foreign(file: PythonFile, node: ast.AST) -> bool:
    name = called(file, node) or ""
    return is_optimizer_call(file, node) and name.rpartition(".")[2] not in ("DeepSpeedCPUAdam", "DeepSpeedCPULion")
