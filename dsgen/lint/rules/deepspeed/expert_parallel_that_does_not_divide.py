from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage, started, whole
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS602",
    kinds=("deepspeed",),
    about=("expert_parallel",),
    since="0.19.2",
    source="deepspeed/module_inject/auto_ep_config.py, runtime/engine.py:_validate_zero3_moe_compatibility",
)
def expert_parallel_that_does_not_divide(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """AutoEP with sizes that do not divide, or beside what it does not work with: DeepSpeed raises.

    autoep_size ranks share the experts of a layer: it must divide their number (``--model``) and the ranks
    (``--world-size``). At stage 3 AutoEP goes with neither hpZ nor quantized gradients, sequence parallelism or
    expert_tensor_parallel_size; with tensor parallelism async_split_plan has to be off.

    ```json bad --model mixtral-8x7b --deepspeed 0.19.8
    {"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 3}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2},
     "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}
    ```

    ```json good --model mixtral-8x7b --world-size 8 --deepspeed 0.19.8
    {"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 4}}
    ```
    """
    section = file.section("expert_parallel")
    size = whole(section.get("autoep_size", 1))
    if section.get("enabled") is not True or size is None:
        return
    yield from _sizes(size, target)
    zero = file.section("zero_optimization")
    if stage(file, target) == 3:
        for key, asked in (
            ("zero_quantized_gradients", zero.get("zero_quantized_gradients") is True),
            ("zero_hpz_partition_size", (whole(zero.get("zero_hpz_partition_size")) or 1) > 1),
        ):
            if asked:
                message = f"AutoEP at stage 3 does not support {key}: the engine raises"
                yield error(("zero_optimization", key), message, help="remove it", on="key")
        if (whole(file.get("sequence_parallel_size")) or 1) > 1:
            message = "AutoEP at stage 3 does not support sequence parallelism: the engine raises"
            yield error(("sequence_parallel_size",), message, help="remove it, or use stage 1 or 2", on="key")
    if (whole(section.get("expert_tensor_parallel_size")) or 1) != 1 and stage(file, target) == 3:
        where = ("expert_parallel", "expert_tensor_parallel_size")
        yield error(
            where, "AutoEP at stage 3 takes expert_tensor_parallel_size 1 only: the engine raises", help="write 1"
        )
    if section.get("async_split_plan") is True and (whole(file.get("tensor_parallel", "autotp_size")) or 1) > 1:
        where = ("expert_parallel", "async_split_plan")
        yield error(where, "async_split_plan does not go with tensor parallelism: DeepSpeed raises", help="write false")
    if section.get("comm_backend") == "deepep" and not section.get("comm_max_tokens_per_rank"):
        message = "comm_backend deepep needs comm_max_tokens_per_rank: DeepSpeed raises"
        help = "write micro batch x longest sequence"
        yield error(("expert_parallel", "comm_backend"), message, help=help)
    if section.get("gate_up_impl") == "fused" and section.get("use_grouped_mm", True) is False:
        where = ("expert_parallel", "gate_up_impl")
        yield error(where, "gate_up_impl fused needs use_grouped_mm: DeepSpeed raises", help="write separate")


def _sizes(size: int, target: LintTarget) -> Iterator[Mark]:
    path = ("expert_parallel", "autoep_size")
    moe = target.model.shapes.architecture.moe if target.model and target.model.shapes else None
    if moe is not None and moe.experts % size:
        divisors = [d for d in range(1, moe.experts + 1) if moe.experts % d == 0]
        message = f"{moe.experts} experts are not divisible by autoep_size {size}: DeepSpeed raises"
        yield error(path, message, help=f"write one of {', '.join(map(str, divisors))}")
    elif target.world_size is not None and target.world_size % size:
        message = f"{target.world_size} ranks are not divisible by autoep_size {size}: DeepSpeed raises"
        yield error(path, message, help="write a divisor of the ranks", related=started(target))
