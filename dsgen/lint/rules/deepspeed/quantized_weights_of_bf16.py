from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS606",
    kinds=("deepspeed",),
    about=("zero_quantized_weights",),
    since="0.10.0",
    until="0.19.6",
    source="deepspeed/runtime/zero/partition_parameters.py:CUDAQuantizer.quantize",
)
def quantized_weights_of_bf16(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """zero_quantized_weights (qwZ) with bf16 in a DeepSpeed whose kernel reads the weights as fp16: they are
    corrupted.

    The kernel takes fp16 only. DeepSpeed converts bf16 weights since 0.19.6; releases before reinterpret their
    bits.

    ```json bad --deepspeed 0.16.9
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
     "zero_quantized_weights": true}}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
     "zero_quantized_weights": true}}
    ```
    """
    path = ("zero_optimization", "zero_quantized_weights")
    if file.get(*path) is True and stage(file, target) == 3 and is_on(file, "bf16", target):
        yield warning(
            path,
            f"{target.library} quantizes weights as if bf16 were fp16, bit for bit",
            help="use DeepSpeed 0.19.6 or newer, fp16, or leave the weights unquantized",
            related=((("bf16", "enabled"), "weights are bf16"),),
        )
