from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, optimizer_type
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS509",
    kinds=("deepspeed",),
    about=("optimizer",),
    source="deepspeed/runtime/engine.py:_do_sanity_check",
)
def lamb_without_dynamic_loss_scaling(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Lamb with a fixed loss scale: the engine asserts.

    It asks for fp16.loss_scale 0 whether or not fp16 is on. Before DeepSpeed 0.17.1, bf16 counts as a loss scale of
    1, so Lamb does not go with bf16 there.

    ```json bad
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 128}, "optimizer": {"type": "Lamb",
     "params": {"lr": 1e-3}}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": true}, "optimizer": {"type": "Lamb", "params": {"lr": 1e-3}}}
    ```
    """
    if optimizer_type(file) not in ("lamb", "onebitlamb"):
        return
    scale = file.get("fp16", "loss_scale", default=0)
    fixed = isinstance(scale, int | float) and not isinstance(scale, bool) and scale != 0
    if fixed:
        message = f"{file.get('optimizer', 'type')} with a fixed loss scale, {scale}: the engine asserts"
        yield error(("fp16", "loss_scale"), message, help="write 0: dynamic loss scaling")
    elif is_on(file, "bf16", target) and not target.since("0.17.1"):
        yield error(
            ("optimizer", "type"),
            f"{target.library} takes bf16 for a fixed loss scale, which Lamb does not go with: the engine asserts",
            help="use fp16, AdamW, or DeepSpeed 0.17.1 and newer",
        )
