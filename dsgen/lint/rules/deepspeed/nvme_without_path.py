from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import Offload, offload_device, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget

_SECTIONS: tuple[Offload, ...] = ("offload_optimizer", "offload_param")


@rule(
    "DS305",
    kinds=("deepspeed",),
    about=("offload_optimizer", "offload_param"),
    source=(
        "deepspeed/runtime/zero/stage3.py:_configure_tensor_swapping; partition_parameters.py:_validate_remote_device"
    ),
)
def nvme_without_path(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """NVMe offload without a folder: DeepSpeed dies of a TypeError that names no key.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}
    ```

    ```json good
    {"train_batch_size": 8,
     "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    ```
    """
    if stage(file, target) != 3:
        return
    for what in _SECTIONS:
        path = ("zero_optimization", what, "nvme_path")
        if offload_device(file, what) == "nvme" and file.get(*path) is None and not is_misspelt(file, target, *path):
            yield error(
                ("zero_optimization", what, "device"),
                f"{what} goes to nvme but has no nvme_path: DeepSpeed raises a TypeError",
                help='write "nvme_path": a folder on a local disk of each node',
            )
