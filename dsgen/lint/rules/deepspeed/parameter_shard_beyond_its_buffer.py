from collections.abc import Iterator
from math import ceil

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_DEFAULT = 1e8


@rule(
    "DS706",
    kinds=("deepspeed",),
    about=("target.model",),
    source="deepspeed/runtime/swap_tensor/partitioned_param_swapper.py: More elements N than buffer size",
)
def parameter_shard_beyond_its_buffer(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """offload_param.buffer_size is smaller than the largest shard of a parameter: the first swap raises.

    With parameters on NVMe, each buffer holds one parameter's shard: elements / ranks of the largest tensor (mostly the
    embedding). Model and ranks come from ``--model``, ``--world-size`` or a spec.

    ```json bad --model llama-3.1-8b --world-size 1
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
     "offload_param": {"device": "nvme", "nvme_path": "/scratch", "buffer_size": 1e8}}}
    ```

    ```json good --model llama-3.1-8b --world-size 8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
     "offload_param": {"device": "nvme", "nvme_path": "/scratch", "buffer_size": 1e8}}}
    ```
    """
    model = target.model
    if model is None or model.shapes is None or stage(file, target) != 3:
        return
    if offload_device(file, "offload_param") != "nvme":
        return
    from dsgen.lint.amounts import elements, number, zero_ranks

    ranks = zero_ranks(file, target)
    size = number(file.get("zero_optimization", "offload_param", "buffer_size", default=_DEFAULT))
    if ranks is None or size is None:
        return
    # The tensors of a model that is split otherwise, too (tensor parallelism) are smaller than these.
    if file.section("tensor_parallel"):
        return
    shard = ceil(model.shapes.largest_tensor / ranks)
    if shard > size:
        path: tuple[str, ...] = ("zero_optimization", "offload_param")
        path = (*path, "buffer_size") if file.has(*path, "buffer_size") else path
        yield error(
            path,
            f"buffer_size {elements(size)} cannot hold the largest shard of {model.name}: "
            f"{model.shapes.largest_tensor} / {ranks} = {shard} elements; the first swap raises",
            help=f"write at least {shard}",
        )
