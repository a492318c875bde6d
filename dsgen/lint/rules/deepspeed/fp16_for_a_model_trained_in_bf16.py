from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Change, Mark, Step, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS703",
    kinds=("deepspeed",),
    about=("target.model",),
    source="deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler.update_scale (raises at the minimum); "
    "dsgen/facts/models.csv (native_dtype)",
)
def fp16_for_a_model_trained_in_bf16(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """fp16 for a model that was trained in bf16.

    bf16 reaches as far as fp32 (3e38), fp16 ends at 65504: activations that a model learnt in bf16 overflow. The loss
    scale falls with every overflow until "Current loss scale already at minimum" ends the run, whatever min_loss_scale
    or a fixed loss_scale says. Use bf16 where the GPU has it. Model and GPU come from ``--model``, ``--gpu`` or a
    spec; where the GPU is not known, this is advice.

    ```json bad --model llama-2-7b --gpu a100-80gb-sxm --method lora
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```

    ```json fixed
    {"train_batch_size": 8, "fp16": {"enabled": false}, "bf16": {"enabled": true}}
    ```

    ```json good --model gpt2 --gpu a100-80gb-sxm
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```

    ```json good --model llama-2-7b --gpu v100-32gb-sxm --method lora
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```
    """
    if target.model is None or target.model.trained_in != "bf16" or not is_on(file, "fp16", target):
        return
    from dsgen.lint.amounts import has_bf16

    native = has_bf16(target.gpu) if target.gpu else None
    if native is False or is_on(file, "bf16", target):
        return
    card = f"{target.gpu.name} computes in bf16" if native and target.gpu else "where the GPU has bf16 (Ampere, newer)"
    where = ("fp16", "enabled")
    make = warning if native else info
    yield make(
        where,
        f"{target.model.name} was trained in bf16: its activations overflow in fp16, and raising min_loss_scale or "
        f"fixing loss_scale does not cure it; {card}{'' if native else ', use it'}",
        help='write "bf16": {"enabled": true} and switch fp16 off',
        fix=_fix(file) if native else None,
    )


def _fix(file: ConfigFile) -> Change:
    on = (
        Step("replace", ("bf16", "enabled"), True)
        if file.has("bf16", "enabled")
        else Step("insert", ("bf16",), {"enabled": True})
    )
    return Change("train in bf16", (Step("replace", ("fp16", "enabled"), False), on), safe=False)
