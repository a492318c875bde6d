from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS302",
    kinds=("deepspeed",),
    about=("offload_optimizer",),
    source="deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer (any device but none sets cpu_offload)",
)
def nvme_below_stage_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """NVMe offload of the optimizer acts as CPU offload at stages 1 and 2.

    DeepSpeed takes any device for the CPU there: nvme_path is not used, the disk stays empty and host memory fills.

    ```json bad
    {"train_batch_size": 8,
     "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    ```

    ```json good
    {"train_batch_size": 8,
     "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    ```
    """
    in_force = stage(file, target)
    if offload_device(file, "offload_optimizer") == "nvme" and in_force in (1, 2):
        yield warning(
            ("zero_optimization", "offload_optimizer", "device"),
            f"at ZeRO stage {in_force} nvme acts as cpu: the optimizer states go to host memory, not to the disk",
            help='use stage 3 for nvme, or write "cpu" if host memory holds the states',
            related=((("zero_optimization", "stage"), f"stage {in_force}"),),
        )
