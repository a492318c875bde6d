from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS303",
    kinds=("deepspeed",),
    about=("offload_optimizer",),
    source=(
        "deepspeed/runtime/engine.py:zero_use_cpu_optimizer (asks only the device); deepspeed/ops/adam/cpu_adam.py:step"
    ),
)
def optimizer_offload_at_stage_0(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Optimizer offload without ZeRO.

    At stage 0 nothing is offloaded, yet DeepSpeed builds its CPU optimizer for the parameters on the GPU, which fails
    at the first step ("CPUAdam param is on cuda").

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}
    ```
    """
    device = offload_device(file, "offload_optimizer")
    if device in ("cpu", "nvme") and stage(file, target) == 0 and file.has("zero_optimization", "stage"):
        builds = file.has("optimizer", "type")
        lot = (
            "DeepSpeed's CPU optimizer then fails on GPU parameters at the first step"
            if builds
            else "it is not offloaded"
        )
        yield (error if builds else warning)(
            ("zero_optimization", "offload_optimizer"),
            f"offload_optimizer needs ZeRO; at stage 0 {lot}",
            help="use stage 1 or 2 (also on one GPU), or remove offload_optimizer",
            related=((("zero_optimization", "stage"), "stage 0"),),
        )
