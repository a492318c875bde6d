from collections.abc import Iterator

from dsgen.lint.coerce import NO
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS401",
    kinds=("deepspeed",),
    about=("fp16",),
    source=(
        "deepspeed/runtime/config.py:_initialize_params (bfloat16 and fp16 modes cannot be simultaneously enabled)"
    ),
)
def fp16_and_bf16(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """fp16 and bf16 both switched on: DeepSpeed refuses.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}}
    ```

    ```json bad --deepspeed 0.16.4 also=DS111
    {"train_batch_size": 8, "fp16": {"enabled": "True"}, "bf16": {"enabled": true}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": false}, "bf16": {"enabled": true}}
    ```
    """
    bf16 = "bf16" if file.has("bf16") else "bfloat16"
    if is_on(file, "fp16", target) and is_on(file, bf16, target):
        written = [file.get(name, "enabled") for name in ("fp16", bf16)]
        if any(value == "auto" or (isinstance(value, str) and value.lower() in NO) for value in written):
            return  # DS405 and DS111 say that such a text switches it on
        text = [name for name in ("fp16", bf16) if file.get(name, "enabled") is not True]
        why = f" ({target.library} takes any text for true, so {text[0]} is on)" if text else ""
        yield error(
            ("fp16", "enabled"),
            f"fp16 and {bf16} are both on: DeepSpeed refuses{why}",
            help="keep one: bf16 on Ampere GPUs and later, else fp16",
            related=(((bf16, "enabled"), "the other one"),),
        )
