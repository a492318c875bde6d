from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS322",
    kinds=("deepspeed",),
    about=("stage3_max_live_parameters", "max_live_parameters", "stage3_prefetch_bucket_size", "prefetch_bucket_size"),
    source="deepspeed/runtime/zero/partitioned_param_coordinator.py:fetch_sub_module (max_params_to_prefetch)",
)
def prefetch_switched_off(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Parameters that stage 3 cannot fetch ahead: every layer waits for its weights.

    stage3_max_live_parameters 0 leaves no room for what is fetched ahead, so each gather starts when the layer
    needs it. So does stage3_prefetch_bucket_size 0 (advice: it saves memory). Leave both to their defaults, 1e9 and
    5e7.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 0}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e8}}
    ```
    """
    if stage(file, target) != 3:
        return
    for key in ("stage3_max_live_parameters", "max_live_parameters"):
        value = file.get("zero_optimization", key)
        if value == 0 and not isinstance(value, bool):
            message = f"{key} 0 leaves no room to fetch ahead: every layer waits for its weights"
            yield warning(("zero_optimization", key), message, help="leave it out: 1e9")
    for key in ("stage3_prefetch_bucket_size", "prefetch_bucket_size"):
        value = file.get("zero_optimization", key)
        if value == 0 and not isinstance(value, bool):
            yield info(("zero_optimization", key), f"{key} 0: nothing is fetched ahead", help="leave it out: 5e7")
