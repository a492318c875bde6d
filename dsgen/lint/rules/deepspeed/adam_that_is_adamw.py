from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import optimizer_type
from dsgen.lint.mark import Mark, info, replace
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS517",
    kinds=("deepspeed",),
    about=("optimizer",),
    source="deepspeed/runtime/engine.py:_configure_basic_optimizer (ADAM_W_MODE_DEFAULT True)",
)
def adam_that_is_adamw(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """Adam with weight decay: DeepSpeed's Adam decays like AdamW (advice, shown with ``--info``).

    The types Adam and AdamW make the same optimizer, with decoupled decay, unless adam_w_mode is false.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.1,
     "adam_w_mode": false}}}
    ```
    """
    params = file.section("optimizer", "params")
    decay = params.get("weight_decay", 0)
    if optimizer_type(file) == "adam" and decay not in (0, "auto") and "adam_w_mode" not in params:
        yield info(
            ("optimizer", "type"),
            "this Adam is AdamW: weight decay is decoupled from the gradient (adam_w_mode true, the default)",
            help='write AdamW, or "adam_w_mode": false for L2 decay',
            fix=replace("call it by its name", ("optimizer", "type"), "AdamW"),
        )
