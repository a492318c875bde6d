from collections.abc import Iterator

from dsgen.lint.class_names import check_name
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS502",
    kinds=("deepspeed",),
    about=("optimizer",),
    source=(
        "deepspeed/runtime/engine.py:_is_supported_optimizer (DeepSpeed's names in any case, else "
        "getattr(torch.optim, type))"
    ),
)
def unknown_optimizer(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An optimizer that this DeepSpeed does not have, or no type at all (the section is then ignored).

    DeepSpeed's own names are read in any case; classes of torch.optim only in their exact spelling.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "sgd", "params": {"lr": 0.1}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 0.1}}}
    ```

    ```json bad
    {"train_batch_size": 8, "optimizer": {"params": {"lr": 0.1}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "adamw", "params": {"lr": 0.1}}}
    ```
    """
    section = file.section("optimizer")
    if section and "type" not in section and not is_misspelt(file, target, "optimizer", "type"):
        yield warning(
            ("optimizer",), "optimizer has no type: DeepSpeed ignores the section", help='write "type"', on="key"
        )
        return
    yield from check_name(file, "optimizer", target)
