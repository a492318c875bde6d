from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_DEFAULT = 5e8
# A matter of judgement, so it is advice only: a quarter of the card.
_SHARE = 4


@rule(
    "DS705",
    kinds=("deepspeed",),
    about=("target.model", "target.gpu"),
    source="deepspeed/runtime/zero/stage_1_and_2.py:setup_buckets, zero/stage3.py:_setup_for_real_optimizer",
)
def bucket_larger_than_the_model(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A reduce bucket for more gradients than there are, or one that takes much of the GPU.

    The gradient buffer holds reduce_bucket_size elements whatever the model's size, twice with overlap_comm at stages 1
    and 2. Beyond the number of parameters it is never filled; up to it, stages 1 and 2 hold at least as many weights
    beside it. If both are more than the GPU has, no model is right for it; from a quarter of the GPU on it is advice
    (``--info``). Model and GPU come from ``--model``, ``--gpu`` or a spec.

    ```json bad --model 110M
    {"train_batch_size": 8, "fp16": {"enabled": true},
     "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8}}
    ```

    ```json bad --gpu rtx-4090
    {"train_batch_size": 8, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e9}}
    ```

    ```json bad --gpu rtx-4090
    {"train_batch_size": 8, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 2e9}}
    ```

    ```json good --model 110M --gpu rtx-4090
    {"train_batch_size": 8, "fp16": {"enabled": true},
     "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e7}}
    ```

    ```json good --model llama-2-7b --gpu rtx-4090
    {"train_batch_size": 8, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8}}
    ```
    """
    level = stage(file, target)
    if (target.model is None and target.gpu is None) or level not in (1, 2, 3):
        return
    from dsgen.lint.amounts import elements, in_bytes, number, width

    size = number(file.get("zero_optimization", "reduce_bucket_size", default=_DEFAULT))
    c = width(file, target)
    if size is None or c is None or _has_no_buckets(file, level):
        return
    twice = level != 3 and file.get("zero_optimization", "overlap_comm") is True
    held = size * c * (2 if twice else 1)
    amount = f"{elements(size)} x {c} bytes{', twice for overlap_comm,' if twice else ''} = {in_bytes(held)}"
    given = file.has("zero_optimization", "reduce_bucket_size")
    path = ("zero_optimization", "reduce_bucket_size") if given else ("zero_optimization",)
    key = "reduce_bucket_size" if given else f"reduce_bucket_size, {elements(size)} by default,"
    model, gpu = target.model, target.gpu
    if model is not None and size > model.parameters:
        gradients = in_bytes(model.parameters * c)
        yield (warning if given else info)(
            path,
            f"{key} makes a buffer of {amount}, while all gradients of {model.shown} are {gradients}"
            + _saved(file, target, level),
            help=f"write at most {elements(model.parameters)}, such as {elements(_below(model.parameters))}"
            + (", or overlap_comm false" if twice else ""),
            on="value",
        )
    elif gpu is not None and held > gpu.memory / _SHARE:
        weights = size * c if level != 3 else 0
        never = held + weights > gpu.memory
        beside = f" beside at least {in_bytes(weights)} of weights if it is ever filled," if never and weights else ""
        yield (warning if never else info)(
            path,
            f"{key} makes a buffer of {amount}{beside} of the {in_bytes(gpu.memory)} that {gpu.name} has",
            help=f"write {elements(_DEFAULT if c * 2 * _DEFAULT < gpu.memory / _SHARE else 2e8)} or less"
            + (", or overlap_comm false" if twice else ""),
        )


def _has_no_buckets(file: ConfigFile, level: int) -> bool:
    """BF16_Optimizer: stage 1, added up in fp32."""
    return level == 1 and file.has("data_types", "grad_accum_dtype")


def _below(parameters: int) -> float:
    """The largest of 1, 2, 5 times a power of ten that is at most half the model: at least two buckets overlap."""
    power = 10 ** (len(str(parameters)) - 1)
    return max(
        factor * base for base in (power, power // 10 or 1) for factor in (1, 2, 5) if factor * base <= parameters // 2
    )


def _saved(file: ConfigFile, target: LintTarget, level: int) -> str:
    """What ZeRO saves on each GPU: of 12 bytes (optimizer), 2 (gradients), 2 (weights) all but 1 / N."""
    from dsgen.lint.amounts import in_bytes, width, zero_ranks

    ranks, model = zero_ranks(file, target), target.model
    if ranks is None or ranks < 2 or model is None or width(file, target) != 2:
        return ""
    sharded = 12 + 2 * (level - 1)
    saved = sharded * model.parameters * (ranks - 1) / ranks
    return f"; ZeRO-{level} saves about {sharded} x {in_bytes(model.parameters)} x {ranks - 1}/{ranks} = " + in_bytes(
        saved
    )
