from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import optimizer_type
from dsgen.lint.mark import Mark, error, remove
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS518",
    kinds=("deepspeed",),
    about=("amsgrad",),
    source="deepspeed/ops/adam/fused_adam.py and cpu_adam.py: constructors",
)
def amsgrad_that_deepspeed_lacks(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """AMSGrad with DeepSpeed's own Adam, which does not have it: the constructor raises.

    torch's Adam has it; `torch_adam` asks for that one, which steps slowly where the optimizer is offloaded.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "amsgrad": true}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "amsgrad": true, "torch_adam": true}}}
    ```
    """
    path = ("optimizer", "params", "amsgrad")
    if optimizer_type(file) in ("adam", "adamw") and file.get(*path) and not file.get(*path[:2], "torch_adam"):
        yield error(
            path,
            "DeepSpeed's own Adam has no AMSGrad: the constructor raises",
            help='remove it, or write "torch_adam": true',
            fix=remove("remove amsgrad", path, safe=False),
        )
