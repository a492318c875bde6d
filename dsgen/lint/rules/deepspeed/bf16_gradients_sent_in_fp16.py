from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, remove, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS414",
    kinds=("deepspeed",),
    about=("communication_data_type",),
    source="deepspeed/runtime/engine.py:communication_data_type",
)
def bf16_gradients_sent_in_fp16(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """communication_data_type fp16 with bf16 on: gradients overflow on their way.

    bf16 reaches as far as fp32; cast to fp16 for the reduction, all beyond 65504 is infinite, and there is no loss
    scale to bring it back.

    ```json bad
    {"train_batch_size": 8, "bf16": {"enabled": true}, "communication_data_type": "fp16"}
    ```

    ```json fixed
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json good
    {"train_batch_size": 8, "bf16": {"enabled": true}, "communication_data_type": "fp32"}
    ```
    """
    said = file.get("communication_data_type")
    if isinstance(said, str) and said.lower() == "fp16" and is_on(file, "bf16", target):
        yield warning(
            ("communication_data_type",),
            "gradients of bf16 are cast to fp16 to be reduced: beyond 65504 they are infinite",
            help="write bf16 or fp32, or leave it out (bf16)",
            fix=remove("reduce in bf16", ("communication_data_type",), safe=False),
        )
