from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS311",
    kinds=("deepspeed",),
    about=("prescale_gradients", "gradient_predivide_factor"),
    source="deepspeed/runtime/zero/stage_1_and_2.py and stage3.py (assert in average_tensor, __avg_scatter_grads)",
)
def prescaled_gradients_with_reduce_scatter(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """prescale_gradients with reduce_scatter at stages 2 and 3: the engine raises.

    So does a gradient_predivide_factor other than 1. reduce_scatter is on by default.

    ```json bad
    {"train_batch_size": 8, "prescale_gradients": true, "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_batch_size": 8, "prescale_gradients": true, "zero_optimization": {"stage": 2, "reduce_scatter": false}}
    ```

    ```json good
    {"train_batch_size": 8, "prescale_gradients": true, "zero_optimization": {"stage": 1}}
    ```
    """
    in_force = stage(file, target)
    if in_force not in (2, 3) or file.get("zero_optimization", "reduce_scatter", default=True) in (False, "auto"):
        return
    factor = file.get("gradient_predivide_factor", default=1)
    for key, asked in (
        ("prescale_gradients", file.get("prescale_gradients") is True),
        ("gradient_predivide_factor", factor != 1),
    ):
        if asked:
            yield error(
                (key,),
                f"{key} cannot stand with reduce_scatter (on by default) at ZeRO stage {in_force}: the engine raises",
                help=f'remove {key}, or write "reduce_scatter": false in zero_optimization',
                on="key",
            )
            return
