from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage, started, whole
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS604",
    kinds=("deepspeed",),
    about=("mics_shard_size",),
    since="0.9.2",
    until="0.19.7",
    source="deepspeed/runtime/zero/mics.py, mics_utils.py (0.19.6)",
)
def mics_shards_that_do_not_fit(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """MiCS with a shard size that does not divide the ranks, or with CPU offload: DeepSpeed raises.

    mics_shard_size ranks hold one copy of the model; hierarchical gathers need shards that span nodes. MiCS was
    removed in DeepSpeed 0.19.7.

    ```json bad also=DS113 --world-size 8 --deepspeed 0.19.6
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "mics_shard_size": 3}}
    ```

    ```json good --world-size 8 --deepspeed 0.19.6
    {"train_batch_size": 8, "zero_optimization": {"stage": 3}}
    ```
    """
    size = whole(file.get("zero_optimization", "mics_shard_size"))
    if size is None or stage(file, target) != 3:
        return
    path = ("zero_optimization", "mics_shard_size")
    if target.world_size is not None and target.world_size % size:
        message = f"{target.world_size} ranks are not divisible by mics_shard_size {size}: DeepSpeed raises"
        yield error(path, message, help="write a divisor, such as the GPUs of a node", related=started(target))
    if offload_device(file, "offload_param") in ("cpu", "nvme"):
        where = ("zero_optimization", "offload_param", "device")
        yield error(
            path,
            "MiCS has no CPU offload of parameters: DeepSpeed raises",
            help="remove mics_shard_size, or offload_param",
            related=((where, "offloaded here"),),
        )
