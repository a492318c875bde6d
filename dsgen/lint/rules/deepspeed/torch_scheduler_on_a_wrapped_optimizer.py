from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.target import LintTarget

_TORCH = deepspeed_schema()["properties"]["scheduler"]["x-dsgen"]["variants"]["others"]["names"]


@rule(
    "DS504",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/base_optimizer.py (DeepSpeedOptimizer is no torch Optimizer); DeepSpeed issue 6992",
)
def torch_scheduler_on_a_wrapped_optimizer(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A schedule of torch.optim.lr_scheduler in the config together with ZeRO, fp16 or bf16.

    DeepSpeed hands the schedule its own wrapped optimizer, which is no torch.optim.Optimizer: torch raises a
    TypeError.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2},
     "scheduler": {"type": "StepLR", "params": {"step_size": 100}}}
    ```

    ```json bad
    {"train_batch_size": 8, "bf16": {"enabled": true}, "scheduler": {"type": "StepLR", "params": {"step_size": 100}}}
    ```

    ```json good
    {"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 100}}}
    ```
    """
    name = file.get("scheduler", "type")
    modes = [mode for mode in ("fp16", "bf16") if is_on(file, mode, target)]
    wraps = "ZeRO" if stage(file, target) in (1, 2, 3) else modes[0] if modes else None
    if name in _TORCH and wraps:
        yield error(
            ("scheduler", "type"),
            f"{name} is torch's and wants a torch optimizer, but {wraps} wraps the optimizer: torch raises a TypeError",
            help="use WarmupLR, WarmupDecayLR, WarmupCosineLR or OneCycle, or build the schedule in code",
        )
