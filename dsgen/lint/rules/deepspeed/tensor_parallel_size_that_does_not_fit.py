from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import started, whole
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS605",
    kinds=("deepspeed",),
    about=("tensor_parallel",),
    since="0.16.4",
    source="deepspeed/runtime/engine.py:_apply_autotp_partitioning, utils/groups.py",
)
def tensor_parallel_size_that_does_not_fit(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """tensor_parallel.autotp_size does not divide the ranks, or contradicts another size: DeepSpeed raises.

    Where it does not divide the ranks (``--world-size``), DeepSpeed stops with an AssertionError that says nothing.
    tensor_parallel.tp_size, if it is written, must be 1 or the same. More ranks than the model has heads of keys
    and values (``--model``) work, but those beyond do no attention.

    ```json bad --world-size 8
    {"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"autotp_size": 3}}
    ```

    ```json bad
    {"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"autotp_size": 4, "tensor_parallel": {"tp_size": 2}}}
    ```

    ```json good --world-size 8 --model llama-3.1-8b
    {"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"autotp_size": 4}}
    ```
    """
    size = whole(file.get("tensor_parallel", "autotp_size"))
    if size is None or size == 1:
        return
    path = ("tensor_parallel", "autotp_size")
    if target.world_size is not None and target.world_size % size:
        message = (
            f"{target.world_size} ranks are not divisible by autotp_size {size}: DeepSpeed asserts, without a word"
        )
        yield error(path, message, help="write a divisor of the ranks", related=started(target))
    for name in ("tensor_parallel", "tp"):
        other = whole(file.get("tensor_parallel", name, "tp_size"))
        if other is not None and other not in (1, size):
            where = ("tensor_parallel", name, "tp_size")
            yield error(
                where, f"tp_size {other} against autotp_size {size}: DeepSpeed raises", help="leave tp_size out"
            )
    section, loss = file.section("tensor_parallel"), ("tensor_parallel", "vocab_parallel_ce_backend")
    if section.get("vocab_parallel_ce_backend") == "liger" and section.get("vocab_parallel_lm_head") is False:
        yield error(loss, "liger needs vocab_parallel_lm_head, which is false: DeepSpeed raises", help="write torch")
    heads = target.model.shapes.architecture.kv_heads if target.model and target.model.shapes else None
    if heads is not None and size > heads:
        message = (
            f"autotp_size {size} is more than the {heads} key-value heads of {target.model.name}"
            if target.model
            else ""
        )
        yield warning(path, f"{message}: the ranks beyond do no attention", help=f"write {heads} or a divisor of it")
