from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, remove, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS301",
    kinds=("deepspeed",),
    about=("offload_param",),
    source="deepspeed/runtime/engine.py:_configure_zero_optimizer (only stage 3 is handed offload_param)",
)
def offload_param_below_stage_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Parameter offload has no effect below ZeRO stage 3.

    At stages 0 to 2 every GPU holds all parameters; DeepSpeed accepts offload_param there and ignores it, so the
    memory that it was to save is not saved. Only stage 3 shards parameters and can keep them elsewhere.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}
    ```
    """
    in_force = stage(file, target)
    device = offload_device(file, "offload_param")
    if device in ("cpu", "nvme") and in_force in (0, 1, 2) and file.has("zero_optimization", "stage"):
        path = ("zero_optimization", "offload_param")
        yield warning(
            path,
            f"offload_param does nothing at ZeRO stage {in_force}: the parameters stay on the GPU",
            help="use stage 3, or offload_optimizer alone",
            related=((("zero_optimization", "stage"), f"stage {in_force}"),),
            fix=remove("remove offload_param", path, safe=False),
        )
