from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# deepspeed/runtime/zero/offload_config.py; elements, 2 bytes each for parameters, 4 for optimizer states.
_BUFFER_SIZE, _BUFFERS, _MAX_IN_CPU, _OPTIMIZER_BUFFERS = 1e8, 5, 1e9, 4
_SUB_GROUP, _EVERYTHING = 1e9, 1e10


@rule(
    "DS704",
    kinds=("deepspeed",),
    about=("target.host_memory",),
    source="deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:_configure_aio, "
    "optimizer_utils.py:OptimizerSwapper (largest_numel x buffer_count)",
)
def swap_buffers_beyond_host_memory(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """NVMe offload whose buffers in host memory do not fit it.

    Every rank swaps through buffers in RAM: buffer_count x buffer_size elements of 2 bytes for parameters, up to
    max_in_cpu elements more that stay there, and buffer_count sub-groups (sub_group_size elements of 4 bytes) for the
    optimizer. DeepSpeed page-locks them. Beside them stand one process per rank and, where the model is known, the
    gradients (2 bytes a parameter, sharded). RAM comes from ``--host-memory`` or a spec, ranks of a node from
    ``--gpus-per-node`` (one is counted where nobody says).

    ```json bad --host-memory 32GB --world-size 1 --model 7B
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "sub_group_size": 1e9,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 4},
     "offload_param": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 5, "buffer_size": 1e9,
      "max_in_cpu": 1e9}}}
    ```

    ```json good --host-memory 64GB --world-size 1 --model 7B
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "sub_group_size": 1e8,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 4},
     "offload_param": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 5, "buffer_size": 2e8,
      "max_in_cpu": 1e8}}}
    ```

    ```json good --host-memory 1TiB --gpus-per-node 8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
     "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch"}}}
    ```
    """
    if target.host_memory is None or stage(file, target) != 3:
        return
    optimizer = offload_device(file, "offload_optimizer") == "nvme"
    parameters = offload_device(file, "offload_param") == "nvme"
    if not optimizer and not parameters:
        return
    from dsgen.facts.constants import constant
    from dsgen.lint.amounts import in_bytes, ranks_per_node

    parts = [*(_of_parameters(file, target) if parameters else ()), *(_of_optimizer(file, target) if optimizer else ())]
    buffers = sum(size for size, _ in parts)
    ranks = ranks_per_node(target) or 1
    beside = int(constant("host_process")) + (_gradients(file, target) if optimizer else 0)
    if ranks * (buffers + beside) <= target.host_memory:
        return
    shown = "; ".join(f"{name} = {in_bytes(size)}" for size, name in parts)
    total = in_bytes(buffers) + (f", x {ranks} ranks of a node = {in_bytes(ranks * buffers)}" if ranks > 1 else "")
    pinned = _pinned(file, target)
    users = "processes and gradients" if beside > constant("host_process") else "processes"
    yield warning(
        ("zero_optimization", "offload_param" if parameters else "offload_optimizer"),
        f"buffers for NVMe take {total} of {in_bytes(target.host_memory)} RAM ({shown}), beside "
        f"{in_bytes(ranks * beside)} for {users}{pinned}",
        help=_help(optimizer, parameters),
        on="key",
    )


def _help(optimizer: bool, parameters: bool) -> str:
    lower = [*(["buffer_size (1e8)", "max_in_cpu"] if parameters else ()), *(["sub_group_size"] if optimizer else ())]
    held = "; buffer_size must still hold the largest shard of a parameter on a rank" if parameters else ""
    return f"lower {', '.join(lower)}{held}"


def _of_parameters(file: ConfigFile, target: LintTarget) -> Iterator[tuple[float, str]]:
    from dsgen.lint.amounts import elements

    section = ("zero_optimization", "offload_param")
    count, size = _of(file, *section, "buffer_count", default=_BUFFERS), _of(file, *section, "buffer_size")
    size = size or _BUFFER_SIZE
    yield count * size * 2, f"parameters: {count:g} x {elements(size)} x 2 bytes"
    kept = _of(file, *section, "max_in_cpu", default=_MAX_IN_CPU)
    shard = _shard(file, target)
    kept = min(kept, shard) if shard is not None else kept
    # Without a model it is an upper bound, which proves nothing unless it was written.
    if shard is not None or file.has(*section, "max_in_cpu"):
        yield kept * 2, f"max_in_cpu: {elements(kept)} x 2 bytes"


def _of_optimizer(file: ConfigFile, target: LintTarget) -> Iterator[tuple[float, str]]:
    from dsgen.lint.amounts import elements

    count = _of(file, "zero_optimization", "offload_optimizer", "buffer_count", default=_OPTIMIZER_BUFFERS)
    group = _of(file, "zero_optimization", "sub_group_size", default=_SUB_GROUP)
    shard = _shard(file, target)
    # A group of everything has a rule of its own (DS310).
    if group > _EVERYTHING or (shard is None and not file.has("zero_optimization", "sub_group_size")):
        return
    group = min(group, shard) if shard is not None else group
    yield count * group * 4, f"optimizer: {count:g} sub-groups of {elements(group)} x 4 bytes"


def _of(file: ConfigFile, *path: str, default: float = 0) -> float:
    from dsgen.lint.amounts import number

    return number(file.get(*path, default=default)) or default


def _shard(file: ConfigFile, target: LintTarget) -> float | None:
    """Parameters of one rank."""
    from dsgen.lint.amounts import zero_ranks

    ranks = zero_ranks(file, target)
    return target.model.parameters / ranks if target.model is not None and ranks else None


def _gradients(file: ConfigFile, target: LintTarget) -> float:
    """They stay in RAM, 2 bytes each, where the optimizer's states are on NVMe (zero/stage3.py)."""
    from dsgen.lint.amounts import zero_ranks

    ranks = zero_ranks(file, target)
    return 2 * target.model.trained(target.method) / ranks if target.model is not None and ranks else 0


def _pinned(file: ConfigFile, target: LintTarget) -> str:
    parts = ("offload_optimizer", "offload_param")
    given = [file.get("zero_optimization", part, "pin_memory") for part in parts]
    default = f"by default {'true' if target.since('0.19.5') else 'false'} here: true since DeepSpeed 0.19.5"
    return f"; page-locked by pin_memory ({default})" if True in given else f"; pin_memory is {default}"
