from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, insert, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS304",
    kinds=("deepspeed",),
    about=("offload_optimizer", "offload_param"),
    source="deepspeed/runtime/zero/offload_config.py (device defaults to none)",
)
def offload_without_device(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An offload section without a device: the device is then none, and nothing is offloaded.

    DeepSpeed's own documentation names cpu as the default; the code says none.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"pin_memory": true}}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    ```
    """
    for what in ("offload_optimizer", "offload_param"):
        section, path = file.get("zero_optimization", what), ("zero_optimization", what, "device")
        if isinstance(section, dict) and "device" not in section and not is_misspelt(file, target, *path):
            yield warning(
                ("zero_optimization", what),
                f"{what} has no device: the default is none, so nothing is offloaded",
                help='write "device": "cpu" (or remove the section)',
                on="key",
                fix=insert('write "device": "cpu"', path, "cpu", safe=False),
            )
