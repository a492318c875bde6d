from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import optimizer_type, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS510",
    kinds=("deepspeed",),
    about=("optimizer",),
    until="0.19.7",
    source="deepspeed/runtime/engine.py:_configure_basic_optimizer (0.19.6)",
)
def one_bit_optimizer_with_zero(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A 1-bit optimizer with ZeRO: the engine asserts.

    OneBitAdam, ZeroOneAdam and OneBitLamb exchange compressed momentum instead of gradients, which ZeRO partitions.
    They were removed in DeepSpeed 0.19.7.

    ```json bad --deepspeed 0.16.9
    {"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}},
     "zero_optimization": {"stage": 1}}
    ```

    ```json good --deepspeed 0.16.9
    {"train_batch_size": 8, "fp16": {"enabled": true}, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}}}
    ```
    """
    if optimizer_type(file) in ("onebitadam", "zerooneadam", "onebitlamb") and stage(file, target) in (1, 2, 3):
        name = file.get("optimizer", "type")
        yield error(
            ("optimizer", "type"),
            f"{name} is not compatible with ZeRO: the engine asserts at stage {stage(file, target)}",
            help="use AdamW, or stage 0",
            related=((("zero_optimization",), "ZeRO is on"),),
        )
