from collections.abc import Iterator

from dsgen.lint.accelerate_file import AccelerateFile
from dsgen.lint.accelerate_section import SECTION
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# What Accelerate takes where nothing is written.
_DEFAULT_STAGE = 2


@rule(
    "AC302",
    kinds=("accelerate",),
    source="accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__ (only applicable for ZeRO Stage 3)",
)
def zero3_init_below_stage_3(file: AccelerateFile, target: LintTarget) -> Iterator[Mark]:
    """zero3_init_flag true below ZeRO stage 3: Accelerate switches it off, with a warning.

    The flag shards a model while it is loaded, which only stage 3 does.

    ```yaml bad
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 2
      zero3_init_flag: true
    ```

    ```yaml good
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 3
      zero3_init_flag: true
      zero3_save_16bit_model: true
    ```
    """
    if file.get(SECTION, "zero3_init_flag") is not True:
        return
    stage = file.get(SECTION, "zero_stage", default=_DEFAULT_STAGE)
    if file.named is not None:
        found = file.config(target)
        if found is None:
            return
        stage = found[1].get("zero_optimization", "stage", default=0)
    if type(stage) is int and stage < 3:
        yield warning(
            (SECTION, "zero3_init_flag"),
            f"zero3_init_flag acts at stage 3 only, and the stage is {stage}: Accelerate switches it off",
            help="write false, or use stage 3",
        )
