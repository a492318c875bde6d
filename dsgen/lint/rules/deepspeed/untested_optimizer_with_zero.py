from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import optimizer_type, stage
from dsgen.lint.mark import Mark, error, insert
from dsgen.lint.rule import rule
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.target import LintTarget

_UNTESTED = {"lamb", "musgd", *deepspeed_schema()["properties"]["optimizer"]["x-dsgen"]["variants"]["others"]["names"]}


@rule(
    "DS506",
    kinds=("deepspeed",),
    about=("optimizer",),
    source=(
        "deepspeed/runtime/engine.py:_do_optimizer_sanity_check; "
        "deepspeed/runtime/zero/utils.py:ZERO_SUPPORTED_OPTIMIZERS"
    ),
)
def untested_optimizer_with_zero(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An optimizer that DeepSpeed does not test with ZeRO, without the key that allows it: the engine raises.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1},
     "zero_allow_untested_optimizer": true}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "Lion", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}
    ```
    """
    name = optimizer_type(file)
    if stage(file, target) not in (1, 2, 3) or file.get("zero_allow_untested_optimizer", default=False) is not False:
        return
    if name in _UNTESTED:
        yield error(
            ("optimizer", "type"),
            f"{file.get('optimizer', 'type')} is no optimizer that DeepSpeed tests with ZeRO: the engine raises",
            help='use AdamW, Adam, Adagrad, Lion or Muon, or write "zero_allow_untested_optimizer": true',
            fix=insert("allow it", ("zero_allow_untested_optimizer",), True, safe=False),
        )
