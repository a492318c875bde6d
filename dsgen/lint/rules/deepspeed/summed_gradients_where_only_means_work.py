from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS313",
    kinds=("deepspeed",),
    about=("gradient_allreduce_op",),
    source="deepspeed/runtime/config.py:_do_error_check (0.19.6)",
)
def summed_gradients_where_only_means_work(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """gradient_allreduce_op sum with stage 3, ZenFlow or DeepCompile: DeepSpeed raises.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2}}
    ```
    """
    if file.get("gradient_allreduce_op") != "sum" or not target.since("0.19.6"):
        return
    clashes = {
        "ZeRO stage 3": stage(file, target) == 3,
        "ZenFlow": file.get("zero_optimization", "zenflow") is not None,
        "DeepCompile": file.get("compile", "deepcompile") is True,
    }
    for name, holds in clashes.items():
        if holds:
            message = f"gradients cannot be summed with {name}: DeepSpeed raises"
            yield error(("gradient_allreduce_op",), message, help='write "mean"')
            return
