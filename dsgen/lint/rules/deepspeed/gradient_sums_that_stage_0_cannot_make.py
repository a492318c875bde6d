from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_NAMES = {
    **dict.fromkeys(("fp16", "float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp32", "float32", "float", "torch.float32"), "fp32"),
}
# First release whose stage 0 has no BF16_Optimizer.
_WITHOUT_BF16_OPTIMIZER = "0.18.5"


@rule(
    "DS409",
    kinds=("deepspeed",),
    about=("fp16", "bf16", "grad_accum_dtype"),
    source="deepspeed/runtime/engine.py:_do_optimizer_sanity_check",
)
def gradient_sums_that_stage_0_cannot_make(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A type of gradient sums that DeepSpeed has no optimizer for without ZeRO: NotImplementedError.

    At stage 0 the gradients have to be added up in the model's own type; bf16 with sums in fp32 works up to
    DeepSpeed 0.18.4, and bf16 without them does not work before 0.17.6. Stages 1 to 3 take both.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}
    ```

    ```json bad
    {"train_batch_size": 8, "data_types": {"grad_accum_dtype": "fp16"}}
    ```

    ```json bad --deepspeed 0.16.9
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json good --deepspeed 0.16.9
    {"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}
    ```
    """
    modes = {mode: is_on(file, mode, target) for mode in ("fp16", "bf16")}
    model = next((mode for mode, on in modes.items() if on), None if None in modes.values() else "fp32")
    if stage(file, target) != 0 or file.has("pipeline") or file.has("amp") or model is None:
        return
    sums = _NAMES.get(str(file.get("data_types", "grad_accum_dtype", default=model)), "")
    if model == "bf16" and sums == "fp32" and not target.since(_WITHOUT_BF16_OPTIMIZER):
        return
    if not sums or (sums == model and not (model == "bf16" and not target.since("0.17.6"))):
        return
    given = file.has("data_types", "grad_accum_dtype")
    yield error(
        ("data_types", "grad_accum_dtype") if given else ("bf16", "enabled"),
        f"at stage 0 {target.library} cannot add gradients of {model} up in {sums}: NotImplementedError",
        help="use ZeRO stage 1"
        + (f", or write {model}" if given and sums != model else ', or "grad_accum_dtype": "fp32"'),
    )
