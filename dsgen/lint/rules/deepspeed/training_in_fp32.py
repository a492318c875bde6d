from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage
from dsgen.lint.mark import Mark, info
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS413",
    kinds=("deepspeed",),
    source="deepspeed/runtime/engine.py:get_data_types",
)
def training_in_fp32(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Neither fp16 nor bf16 is switched on: DeepSpeed trains in fp32 (advice, shown with ``--info``).

    Weights and activations take twice the memory, and tensor cores idle. Often the section was meant and is
    missing.

    ```json bad --loaded-by deepspeed
    {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    ```

    ```json good --loaded-by deepspeed
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}
    ```
    """
    others = file.get("torch_autocast", "enabled") is True or file.has("amp") or file.has("bfloat16")
    if target.loaded_by != "deepspeed" or file.dialect == "python" or others or stage(file, target) in (0, None):
        return
    if is_on(file, "fp16", target) is False and is_on(file, "bf16", target) is False:
        yield info(
            ("zero_optimization",),
            "neither fp16 nor bf16 is on: training is in fp32, with twice the memory",
            help='write "bf16": {"enabled": true}, or fp16 on GPUs before Ampere',
            on="key",
        )
