from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS411",
    kinds=("deepspeed",),
    about=("torch_autocast",),
    since="0.17.2",
    source="deepspeed/runtime/torch_autocast.py:_validate_auto_cast_settings",
)
def autocast_with_quantized_weights(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """torch_autocast with zero_quantized_weights: the engine asserts.

    ```json bad
    {"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bf16"},
     "zero_optimization": {"stage": 3, "zero_quantized_weights": true}}
    ```

    ```json good
    {"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bf16"}, "zero_optimization": {"stage": 3}}
    ```
    """
    if (
        file.get("torch_autocast", "enabled") is True
        and file.get("zero_optimization", "zero_quantized_weights") is True
    ):
        yield error(
            ("torch_autocast", "enabled"),
            "torch_autocast and zero_quantized_weights exclude each other: the engine asserts",
            help="remove one of the two",
            related=((("zero_optimization", "zero_quantized_weights"), "weights are quantized here"),),
        )
