from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage, whole
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Before, stage 2 takes grad_accum_dtype fp32 and adds in bf16 all the same (stage_1_and_2.py:get_all_grad_tensors).
_STAGE_2_SINCE = "0.19.8"
_FP32 = ("fp32", "float32", "float", "torch.float32")  # deepspeed/runtime/config.py:DtypeEnum


@rule(
    "DS406",
    kinds=("deepspeed",),
    about=("gradient_accumulation_steps",),
    source="deepspeed/runtime/engine.py:get_data_types (grad_accum_dtype defaults to the model's)",
)
def many_gradients_added_in_bf16(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Gradients of many micro batches added up in bf16.

    Under ZeRO, DeepSpeed accumulates gradients in the model's data type. bf16 has 8 bits of precision: added to a sum
    of dozens, most of a micro batch's gradient is rounded away. data_types.grad_accum_dtype: fp32 costs 2 more bytes
    per gradient (sharded from stage 2 on); stage 2 heeds it since DeepSpeed 0.19.8.

    ```json bad
    {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 64, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 64, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "fp32"}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
     "zero_optimization": {"stage": 2}}
    ```
    """
    steps = whole(file.get("gradient_accumulation_steps"))
    level = stage(file, target)
    if steps is None or not is_on(file, "bf16", target) or level not in (1, 2, 3):
        return
    from dsgen.legality.gradient_sums import too_many  # late: few files ask for it

    if steps < too_many("bf16"):
        return
    heeded = level != 2 or target.since(_STAGE_2_SINCE)
    said = file.get("data_types", "grad_accum_dtype")
    if said is None or (not heeded and said in _FP32):
        write = 'write "data_types": {"grad_accum_dtype": "fp32"} (2 more bytes per gradient)'
        yield warning(
            ("gradient_accumulation_steps",),
            f"gradients of {steps} micro batches are added in bf16, which keeps 8 bits: small ones are rounded away",
            help=write if heeded else f"{target.library} adds in fp32 at stage 3 only: use that, or 0.19.8 and newer",
        )
