from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS410",
    kinds=("deepspeed",),
    about=("amp",),
    until="0.19.8",
    source="deepspeed/runtime/engine.py:_do_optimizer_sanity_check (0.19.7)",
)
def amp_beside_zero_or_16_bit(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Apex amp together with ZeRO, fp16 or bf16: the engine raises.

    amp casts by itself. It was removed in DeepSpeed 0.19.8; torch_autocast takes its place.

    ```json bad also=DS113 --deepspeed 0.19.7
    {"train_batch_size": 8, "amp": {"enabled": true}, "zero_optimization": {"stage": 1}}
    ```

    ```json good --deepspeed 0.19.7
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}
    ```
    """
    if file.get("amp", "enabled") is not True:
        return
    others = [mode for mode in ("fp16", "bf16") if is_on(file, mode, target)]
    others += ["ZeRO"] if stage(file, target) in (1, 2, 3) else []
    if others:
        message = f"amp with {' and '.join(others)}: {target.library} raises"
        yield error(("amp", "enabled"), message, help="remove amp: fp16, bf16 and torch_autocast do its work")
