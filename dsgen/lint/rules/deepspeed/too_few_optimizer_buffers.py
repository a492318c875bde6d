from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, optimizer_type, stage, whole
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# By optimizer: fp32 weights, gradients, and its states.
_NEEDED = {"adam": 4, "adamw": 4, "lion": 3, "adagrad": 3}


@rule(
    "DS319",
    kinds=("deepspeed",),
    about=("buffer_count",),
    source="deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py:swap_in_optimizer_state "
    "(required_buffer_count)",
)
def too_few_optimizer_buffers(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Too few buffers to swap an optimizer through: the first step fails.

    With the optimizer on NVMe, a sub-group comes in as its fp32 weights, its gradients and the optimizer's states,
    each in a buffer of its own: 4 for Adam and AdamW (the default of buffer_count), 2 states included.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 3,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 3}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 3,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 4}}}
    ```
    """
    count = file.get("zero_optimization", "offload_optimizer", "buffer_count")
    if whole(count) is None or stage(file, target) != 3 or offload_device(file, "offload_optimizer") != "nvme":
        return
    needed = _NEEDED.get(optimizer_type(file) or "")
    if needed is not None and count < needed:
        yield error(
            ("zero_optimization", "offload_optimizer", "buffer_count"),
            f"buffer_count {count}: a sub-group of {file.get('optimizer', 'type')} needs {needed} "
            f"(weights, gradients, states: {needed - 2}), so the first step fails",
            help=f"write {needed}",
        )
