from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS326",
    kinds=("deepspeed",),
    source="accelerate/utils/dataclasses.py: Please specify the ZeRO optimization config in the DeepSpeed config",
)
def zero_section_missing_for_accelerate(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A config without zero_optimization that accelerate loads: it raises, for stage 0 as well.

    transformers' Trainer hands its config to accelerate (since 4.31), so it raises there, too. DeepSpeed itself takes
    such a config for stage 0; where that is meant, write it.

    ```json bad --loaded-by accelerate
    {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}
    ```

    ```json good --loaded-by accelerate
    {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 0}}
    ```

    ```json good --loaded-by deepspeed
    {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}
    ```
    """
    if target.loaded_by not in ("accelerate", "transformers") or file.has("zero_optimization"):
        return
    if is_misspelt(file, target, "zero_optimization"):
        return
    is_certain = target.loaded_by == "accelerate"
    how = "accelerate raises" if is_certain else "accelerate, to which transformers hands it since 4.31, raises"
    yield (error if is_certain else warning)(
        (),
        f"without zero_optimization {how}",
        help='write "zero_optimization": {"stage": 0} for plain data parallelism',
    )
